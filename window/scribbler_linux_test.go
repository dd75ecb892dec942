package window_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// scribblerVariable has the address at which the test tells ranks to end, by closing their connections.
const scribblerVariable = "RMA_TEST_SCRIBBLER"

// scribbled goes on with collectives, locks and atomics until the test ends it, or a call fails.
var scribbled = jobtest.Register("goes on while its memory is scribbled over", func(ctx context.Context, w *world.World) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	win, err := window.Allocate[int64](ctx, w, 64)
	if err != nil {
		return err
	}
	conn, err := net.Dial("unix", os.Getenv(scribblerVariable))
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, conn)
		stop()
	}()
	for round := 0; ; round++ {
		if err := scribbledRound(ctx, w, win, round); err != nil {
			return err
		}
	}
})

func scribbledRound(ctx context.Context, w *world.World, win *window.Window[int64], round int) error {
	next, root, lead := (w.Rank()+1)%w.Size(), round%w.Size(), int64(0)
	short, long, all := []int64{1}, make([]int64, 3000), make([]int64, w.Size())
	for _, step := range []func() error{
		func() error { return w.Barrier(ctx) },
		func() error { return world.AllReduceOp(ctx, w, short, short, world.Sum) },
		func() error { return world.AllReduceOp(ctx, w, long, long, world.Sum) },
		func() error { return world.Broadcast(ctx, w, root, short) },
		func() error { return world.Broadcast(ctx, w, root, long) },
		func() error { return world.AllGather(ctx, w, short, all) },
		func() error { return win.Fence(ctx) },
		func() error { return win.Put(short, next, 1) },
		func() error { return win.Fence(ctx, window.NoSucceed) },
		func() error { return win.Lock(ctx, window.Exclusive, root) },
		func() error { return win.Accumulate(window.Sum, long[:32], root, 8) },
		func() error { return win.Unlock(ctx, root) },
		func() error { return win.Lock(ctx, window.Shared, root) },
		func() error { return win.FetchAndOp(window.Sum, 1, &lead, root, 0) },
		func() error { return win.Unlock(ctx, root) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// TestScribbler writes to random words of the segments of ranks, from another process, which is the test. Each rank goes on,
// or ends with an error: it does not panic, and what waits for a word ends with its context.
func TestScribbler(t *testing.T) {
	busy.Acquire(t)
	for seed := range testsize.Samples(t, 3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { scribble(t, rand.New(rand.NewPCG(seed, 28))) })
	}
}

func scribble(t *testing.T, random *rand.Rand) {
	ranks := testsize.PlainOrLarge(3, 4)
	address := filepath.Join(t.TempDir(), "scribbler")
	listener, err := net.Listen("unix", address)
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	job := jobtest.StartWith(t, ranks, scribbled, func(int) []string { return []string{scribblerVariable + "=" + address} })
	var going []net.Conn
	var segments []segment
	for rank := range ranks {
		conn, err := listener.Accept()
		require.NoError(t, err)
		going = append(going, conn)
		defer func() { _ = conn.Close() }()
		// Any of the ranks has connected: all have their segments since Init.
		segments = append(segments, openSegment(t, job.Pid(rank)))
	}
	for range testsize.N(1 << random.IntN(10)) {
		segments[random.IntN(ranks)].scribble(t, random)
	}
	for _, conn := range going {
		require.NoError(t, conn.Close())
	}
	for rank, err := range job.Wait() {
		require.Error(t, err, "rank %d", rank)
		for _, sign := range []string{"ended without a report", "where it was after", "panic", "fatal error"} {
			require.NotContains(t, err.Error(), sign, "rank %d", rank)
		}
	}
}

// segment is the segment of another process, and the ranges of it that have memory.
type segment struct {
	file   *os.File
	ranges [][2]int64
}

// openSegment opens the segment of a process as another of its user can.
func openSegment(t *testing.T, pid int) segment {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || to != "/memfd:rma (deleted)" {
			continue
		}
		file, err := os.OpenFile(link, os.O_RDWR, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = file.Close() })
		s := segment{file: file}
		for end := int64(0); ; {
			start, err := unix.Seek(int(file.Fd()), end, unix.SEEK_DATA)
			if err != nil {
				require.ErrorIs(t, err, unix.ENXIO)
				break
			}
			end, err = unix.Seek(int(file.Fd()), start, unix.SEEK_HOLE)
			require.NoError(t, err)
			s.ranges = append(s.ranges, [2]int64{start, end})
		}
		require.NotEmpty(t, s.ranges)
		return s
	}
	require.FailNow(t, "no segment", "process %d", pid)
	return segment{}
}

// scribble changes a random word: mostly one that is not zero, since most of the memory is not used.
func (s *segment) scribble(t *testing.T, random *rand.Rand) {
	t.Helper()
	const wordBytes = 8
	r := s.ranges[random.IntN(len(s.ranges))]
	at := r[0] + random.Int64N((r[1]-r[0])/wordBytes)*wordBytes
	memory := make([]byte, min(r[1]-at, 64<<10))
	_, err := s.file.ReadAt(memory, at)
	require.NoError(t, err)
	skip := 0
	if random.IntN(4) > 0 {
		for skip < len(memory) && binary.NativeEndian.Uint64(memory[skip:]) == 0 {
			skip += wordBytes
		}
		skip %= len(memory)
	}
	word := binary.NativeEndian.Uint64(memory[skip:])
	switch random.IntN(4) {
	case 0:
		word = random.Uint64()
	case 1:
		word = random.Uint64N(8)
	default:
		word ^= 1 << random.IntN(64)
	}
	_, err = s.file.WriteAt(binary.NativeEndian.AppendUint64(nil, word), at+int64(skip))
	require.NoError(t, err)
}
