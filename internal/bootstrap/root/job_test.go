package root

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

const (
	// ample is a patience that no test uses up.
	ample = time.Minute
	// brief is a patience that a test waits for.
	brief = 2 * time.Second
)

var testKey = []byte("a key of at least sixteen bytes")

// vacant returns an address at which nothing listens.
func vacant(t *testing.T) string {
	t.Helper()
	host := "127.0.0.1"
	if runtime.GOOS == "linux" {
		// Each test uses its own host, so that no other test takes the port.
		host = fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 2+rand.IntN(250))
	}
	return vacantAt(t, host)
}

// vacantAt returns another such address at the same host. Each address is listened at only once. A process that another
// test is starting may hold a listener for a moment after it was closed here, until the process executes its program.
func vacantAt(t *testing.T, host string) string {
	t.Helper()
	if runtime.GOOS == "linux" {
		// The system does not assign ports below its own range, so this port needs no check.
		return fmt.Sprintf("%s:%d", host, 10_000+rand.IntN(20_000))
	}
	l, err := net.Listen("tcp", host+":0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func rankOf(root string, rank, size int) *Settings {
	return &Settings{Root: root, Rank: rank, Size: size, Key: testKey}
}

// open returns the numbers of goroutines and descriptors of this process.
func open() (goroutines, descriptors int) {
	// The count is 0 where the system does not report descriptors.
	entries, _ := os.ReadDir("/proc/self/fd")
	return runtime.NumGoroutine(), len(entries)
}

// runTests runs the tests in parallel, because they mostly wait. It fails if they leave a goroutine or a descriptor
// behind.
func runTests(m *testing.M) error {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(16, runtime.GOMAXPROCS(0)))); err != nil {
		return err
	}
	// The runtime's poller takes descriptors of its own when it is first used.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	goroutines, descriptors := open()
	if code := m.Run(); code != 0 {
		os.Exit(code)
	}
	what := fmt.Sprintf("the tests to leave no more than %d goroutines and %d descriptors", goroutines, descriptors)
	return await.Until(context.Background(), what, func() bool {
		g, d := open()
		return g <= goroutines && d <= descriptors
	})
}

// A part is the settings of a rank of a test, and what the rank does after it has joined.
type part struct {
	settings *Settings
	patience time.Duration
	do       func(m *Member) error
}

// play runs the parts at once, and returns the error of each.
func play(t *testing.T, parts ...part) []error {
	t.Helper()
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for _, i := range rand.Perm(len(parts)) {
		p := parts[i]
		all.Go(func() {
			m, err := Join(t.Context(), p.settings, p.patience)
			if err == nil {
				err = p.do(m)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

// exchange makes a rank put a value and get the values of all ranks.
func exchange(m *Member) error {
	for round := range 2 {
		key := func(rank int) string { return fmt.Sprintf("%d-from-%d", round, rank) }
		if err := m.Put(key(m.Rank()), fmt.Sprint("value-", m.Rank())); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), ample)
		defer cancel()
		if err := m.Barrier(ctx); err != nil {
			return err
		}
		for rank := range m.Size() {
			value, err := m.Get(key(rank))
			if err != nil {
				return err
			}
			if want := fmt.Sprint("value-", rank); value != want {
				return fmt.Errorf("value of rank %d is %q", rank, value)
			}
		}
	}
	return m.Finalize()
}

func TestRanksFindEachOtherInAnyOrder(t *testing.T) {
	for _, size := range []int{1, 2, 3, 32} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			root := vacant(t)
			var parts []part
			for rank := range size {
				parts = append(parts, part{rankOf(root, rank, size), ample, exchange})
			}
			require.NoError(t, errors.Join(play(t, parts...)...))
		})
	}
}

// The other ranks have all called without success when rank 0 starts. This test and others that use an address again
// start no processes at the same time: these would have the listener, too, until they execute their program.
func TestRootStartsLast(t *testing.T) {
	const size = 4
	l, err := net.Listen("tcp", vacant(t))
	require.NoError(t, err)
	root := l.Addr().String()
	var ranks sync.WaitGroup
	errs := make([]error, size)
	start := func(rank int) {
		ranks.Go(func() { errs[rank] = play(t, part{rankOf(root, rank, size), ample, exchange})[0] })
	}
	for rank := 1; rank < size; rank++ {
		start(rank)
		conn, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.NoError(t, l.Close())
	start(0)
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
}

// If a root ends while ranks wait for others, the ranks find it when it is started again.
func TestRootStartsAgain(t *testing.T) {
	l, err := net.Listen("tcp", vacant(t))
	require.NoError(t, err)
	root := l.Addr().String()
	var ranks sync.WaitGroup
	errs := make([]error, 2)
	ranks.Go(func() { errs[1] = play(t, part{rankOf(root, 1, 2), ample, exchange})[0] })
	conn, err := l.Accept()
	require.NoError(t, err)
	require.NoError(t, proof.Accept(conn, testKey, purpose))
	c, err := readClaim(conn)
	require.NoError(t, err)
	require.Equal(t, claim{rank: 1, size: 2}, c)
	require.NoError(t, l.Close())
	require.NoError(t, conn.Close())
	ranks.Go(func() { errs[0] = play(t, part{rankOf(root, 0, 2), ample, exchange})[0] })
	ranks.Wait()
	require.NoError(t, errors.Join(errs...))
}

// joined returns the members of a complete job.
func joined(t *testing.T, size int, patience time.Duration) []*Member {
	t.Helper()
	root := vacant(t)
	members := make([]*Member, size)
	var parts []part
	for rank := range size {
		parts = append(parts, part{rankOf(root, rank, size), ample, func(m *Member) error {
			m.patience = patience
			members[rank] = m
			return nil
		}})
	}
	require.NoError(t, errors.Join(play(t, parts...)...))
	t.Cleanup(func() {
		for rank := size - 1; rank >= 0; rank-- {
			_ = members[rank].Close()
		}
	})
	return members
}

func TestBrokenConnectionLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	members := joined(t, 4, ample)
	require.NoError(t, members[1].Put("key", "value"))
	var all sync.WaitGroup
	for _, m := range members {
		all.Go(func() { _ = m.Barrier(t.Context()) })
	}
	all.Wait()
	require.NoError(t, members[2].Close())
	// The barrier waits until the server has noticed the end.
	for _, rank := range []int{0, 1, 3} {
		require.Error(t, members[rank].Barrier(t.Context()), "a barrier without rank 2")
		value, err := members[rank].Get("key")
		require.NoError(t, err)
		require.Equal(t, "value", value)
		require.Equal(t, testKey, members[rank].Key())
	}
	for _, rank := range []int{3, 1, 0} {
		require.NoError(t, members[rank].Finalize(), "rank %d", rank)
	}
}

func TestRootServesUntilTheLastHasFinalized(t *testing.T) {
	t.Parallel()
	members := joined(t, 3, ample)
	finalized := make(chan error, 1)
	go func() { finalized <- members[0].Finalize() }()
	require.NoError(t, members[1].Finalize())
	_, err := members[2].Get("PMI_process_mapping")
	require.Error(t, err, "a value that no rank put")
	require.NoError(t, members[2].Put("key", "value"))
	select {
	case err := <-finalized:
		t.Fatal("rank 0 did not wait for rank 2: ", err)
	default:
	}
	require.NoError(t, members[2].Finalize())
	require.NoError(t, <-finalized)
}

func TestRootDoesNotWaitForTheDismissed(t *testing.T) {
	t.Parallel()
	members := joined(t, 4, ample)
	members[0].Dismiss(3)
	members[1].Dismiss(2)
	require.NoError(t, members[1].Finalize())
	require.NoError(t, members[2].Finalize())
	require.NoError(t, members[0].Finalize())
	require.Error(t, members[3].Put("key", "value"))
}

func TestRootDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	members := joined(t, 4, brief)
	require.NoError(t, members[2].Finalize())
	err := members[0].Finalize()
	require.ErrorIs(t, err, ErrUnfinished)
	require.ErrorContains(t, err, "1, 3 had not")
	require.Error(t, members[1].Put("key", "value"))
}

// FinalizeContext of rank 0 ends with its context, and names a rank that it waits for. The root continues to serve, and
// the next FinalizeContext waits for the same ranks.
func TestFinalizeContext(t *testing.T) {
	members := joined(t, 3, ample)
	require.NoError(t, members[1].Finalize())
	await.True(t, "rank 1 to leave", func() bool { return slices.Equal(members[0].host.unfinished(), []int{2}) })
	enough := errors.New("enough")
	for range 2 {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- members[0].FinalizeContext(ctx) }()
		await.Parked(t, "root.(*host).finish", 1)
		cancel(enough)
		err := await.Receive(t, "the end of rank 0's call", ended)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, enough)
		require.ErrorContains(t, err, "rank 2 has not finalized")
	}
	require.NoError(t, members[2].Put("key", "value"))
	require.NoError(t, members[2].Finalize())
	require.NoError(t, members[0].Finalize())
}
