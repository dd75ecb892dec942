package root

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

const roleVariable = "RMA_ROOT_TEST_ROLE"

// TestMain also runs the ranks that tests start as processes. A role names what such a rank does, and the rank ends
// with its standard input.
func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		if err := runTests(m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			// The stacks show which goroutines are left.
			_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
			os.Exit(1)
		}
		return
	}
	go await.Killed()
	if err := roles[role](); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

var orders = bufio.NewScanner(os.Stdin)

// order reports to the test that the rank has reached a point, and returns when the test lets it continue.
func order(point string) error {
	fmt.Println(point)
	if !orders.Scan() {
		return errors.New("the test has ended")
	}
	return nil
}

func member() (*Member, error) {
	s, err := FromEnvironment(nil)
	if err != nil {
		return nil, err
	}
	return Join(context.Background(), s, ample)
}

var roles = map[string]func() error{
	"exchange": func() error {
		m, err := member()
		if err != nil {
			return err
		}
		return exchange(m)
	},
	// work is a rank that does its job and then still needs the root.
	"work": func() error {
		m, err := member()
		if err != nil {
			return err
		}
		if err := m.Put(fmt.Sprint("of-", m.Rank()), "value"); err != nil {
			return err
		}
		if err := m.Barrier(context.Background()); err != nil {
			return err
		}
		if err := order("working"); err != nil {
			return err
		}
		for rank := range m.Size() {
			if _, err := m.Get(fmt.Sprint("of-", rank)); err != nil {
				return err
			}
		}
		return m.Finalize()
	},
	// barrier is a job whose ranks wait in a barrier that rank 0 does not enter.
	"barrier": func() error {
		m, err := member()
		if err != nil {
			return err
		}
		if m.Rank() == 0 {
			return order("joined")
		}
		fmt.Println("joined")
		return m.Barrier(context.Background())
	},
	// hasty is a rank with little patience.
	"hasty": func() error {
		s, err := FromEnvironment(nil)
		if err != nil {
			return err
		}
		m, err := Join(context.Background(), s, brief)
		if err == nil {
			err = errors.Join(errors.New("joined"), m.Close())
		}
		return err
	},
	// half is a root that stops after the first rank has come.
	"half": func() error {
		s, err := FromEnvironment(nil)
		if err != nil {
			return err
		}
		l, err := listen(context.Background(), s)
		if err != nil {
			return err
		}
		h := newHost(s, l)
		defer h.close()
		if err := await.Until(context.Background(), "a rank to be seated", func() bool { return h.seated() > 0 }); err != nil {
			return err
		}
		return order("seated")
	},
}

// A process is a rank that the test has started.
type process struct {
	cmd   *exec.Cmd
	says  *bufio.Scanner
	input io.WriteCloser
}

// A job starts processes in a role, as the ranks of a job of its own.
type job struct {
	t    *testing.T
	root string
	key  string
	size int
}

func newJob(t *testing.T, size int) job {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(hex.EncodeToString(testKey)+"\n"), 0o600))
	return job{t: t, root: vacant(t), key: key, size: size}
}

func (j job) start(role string, rank int) *process {
	j.t.Helper()
	return j.startAs(exec.Command(program(j.t)), role, rank)
}

func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

func (j job) startAs(cmd *exec.Cmd, role string, rank int) *process {
	j.t.Helper()
	cmd.Env = append(append(os.Environ(), cmd.Env...), "GORACE=atexit_sleep_ms=0", roleVariable+"="+role, "RMA_ROOT="+j.root, fmt.Sprint("RMA_RANK=", rank), fmt.Sprint("RMA_SIZE=", j.size), "RMA_KEY_FILE="+j.key)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	require.NoError(j.t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(j.t, err)
	require.NoError(j.t, cmd.Start())
	p := &process{cmd: cmd, says: bufio.NewScanner(output), input: input}
	j.t.Cleanup(p.kill)
	return p
}

// startAll starts all ranks, and returns them when each has printed a word.
func (j job) startAll(role, word string) (ranks []*process) {
	j.t.Helper()
	for rank := range j.size {
		ranks = append(ranks, j.start(role, rank))
	}
	for rank, p := range ranks {
		require.Equal(j.t, word, p.next(), "rank %d", rank)
	}
	return ranks
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// next returns the next line of the process.
func (p *process) next() string {
	if !p.says.Scan() {
		return "ended without a word"
	}
	return p.says.Text()
}

func (p *process) goOn(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(p.input, "go on\n")
	require.NoError(t, err)
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	j := newJob(t, 4)
	var ranks []*process
	for _, rank := range []int{2, 3, 0, 1} {
		ranks = append(ranks, j.start("exchange", rank))
	}
	for _, p := range ranks {
		require.Equal(t, "done", p.next())
	}
}

func TestKilledRankDoesNotEndTheJob(t *testing.T) {
	t.Parallel()
	j := newJob(t, 4)
	ranks := j.startAll("work", "working")
	ranks[2].kill()
	for _, rank := range []int{1, 3, 0} {
		ranks[rank].goOn(t)
	}
	for _, rank := range []int{1, 3, 0} {
		require.Equal(t, "done", ranks[rank].next(), "rank %d", rank)
	}
}

func TestKilledRootIsAnErrorWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	ranks := j.startAll("work", "working")
	ranks[0].kill()
	for _, p := range ranks[1:] {
		p.goOn(t)
		said := p.next()
		require.True(t, strings.HasPrefix(said, "failed pmi: get_result: root: connection lost: rank 0, which serves the exchange at "+j.root+", has ended"), said)
	}
}

func TestRootIsKilledWhileOthersAreInABarrier(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	ranks := j.startAll("barrier", "joined")
	ranks[0].kill()
	for _, p := range ranks[1:] {
		said := p.next()
		require.True(t, strings.HasPrefix(said, "failed pmi: barrier_out: root: connection lost: rank 0, which serves the exchange at "+j.root+", has ended"), said)
	}
}

func TestRootIsKilledBeforeAllAreThere(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	half := j.start("half", 0)
	ctx, overtime := context.WithCancelCause(t.Context())
	defer overtime(nil)
	ended := make(chan error, 1)
	go func() {
		_, err := Join(ctx, rankOf(j.root, 1, 3), ample)
		ended <- err
	}()
	require.Equal(t, "seated", half.next())
	half.kill()
	// The rank that calls again knows that the root has ended. Its time ends during that call.
	l, err := net.Listen("tcp", j.root)
	require.NoError(t, err)
	callers(t, l, 1)
	overtime(overdue{brief})
	err = <-ended
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "rank 1 got no answer at "+j.root+": ")
	require.ErrorContains(t, err, overdue{brief}.Error())
}

// A root and a rank are killed before all ranks are there, and are started again.
func TestKilledBeforeAllAreThereAndStartedAgain(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	half := j.start("half", 0)
	early := j.start("exchange", 1)
	require.Equal(t, "seated", half.next())
	half.kill()
	j.start("exchange", 2).kill()
	again := j.start("exchange", 0)
	late := j.start("exchange", 2)
	for _, p := range []*process{early, again, late} {
		require.Equal(t, "done", p.next())
	}
}

// Of two processes with one number, one gets an error, and the job continues with the other.
func TestTwoProcessesWithOneNumber(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	root := j.start("exchange", 0)
	said := make(chan string, 2)
	for range 2 {
		p := j.start("exchange", 1)
		go func() { said <- p.next() }()
	}
	rejected := <-said
	require.True(t, strings.HasPrefix(rejected, fmt.Sprintf("failed root: rank 1 at %s: root: claim rejected: the root says: rank 1 is taken by ", j.root)), rejected)
	last := j.start("exchange", 2)
	for _, p := range []*process{root, last} {
		require.Equal(t, "done", p.next())
	}
	require.Equal(t, "done", <-said)
}

// Processes with different sizes of their job all get the error at once.
func TestProcessesThatDisagree(t *testing.T) {
	j := newJob(t, 4)
	other := j
	other.size = 5
	// The root starts after the other ranks have called. A rank that starts after the job has ended would find no root.
	l, err := net.Listen("tcp", j.root)
	require.NoError(t, err)
	ranks := []*process{j.start("exchange", 1), other.start("exchange", 2), j.start("exchange", 3)}
	callers(t, l, len(ranks))
	ranks = append(ranks, j.start("exchange", 0))
	for _, p := range ranks {
		said := p.next()
		require.Contains(t, said, "root: the ranks disagree: ")
		require.Contains(t, said, "rank 2 has RMA_SIZE=5, rank 0 has 4 (called from 127.")
	}
}

// callers waits until count ranks have called without success, and then frees the address of the listener.
func callers(t *testing.T, l net.Listener, count int) {
	t.Helper()
	for range count {
		conn, err := l.Accept()
		require.NoError(t, err)
		// A rank whose call is still open does not make another one.
		defer conn.Close()
	}
	require.NoError(t, l.Close())
}

// A stopped root accepts connections and never answers.
func TestRootProcessThatIsStopped(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	half := j.start("half", 0)
	j.start("exchange", 1)
	require.Equal(t, "seated", half.next())
	require.NoError(t, half.cmd.Process.Signal(syscall.SIGSTOP))
	said := j.start("hasty", 2).next()
	require.Equal(t, "failed root: no root: rank 2 got no answer at "+j.root+": it accepts the connection and says nothing; "+overdue{brief}.Error(), said)
}

func TestRootProcessOnAnotherHost(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2)
	j.root = "203.0.113.1:7000"
	said := j.start("exchange", 0).next()
	require.True(t, strings.HasPrefix(said, "failed root: rank 0 cannot listen on RMA_ROOT=203.0.113.1:7000: "), said)
	require.True(t, strings.HasSuffix(said, "(this is not the host of RMA_ROOT, where rank 0 has to run)"), said)
}
