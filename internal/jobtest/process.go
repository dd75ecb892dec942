package jobtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/nettest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

const (
	bodyVariable = "RMA_JOBTEST_BODY"
	// The descriptors that a rank inherits: its manager, and the pipe for its reports.
	managerFile = 3
	reportFile  = 4
	// limit bounds a rank's body. The context of the body ends after it.
	limit = 2 * time.Minute
	// nearly is the part of that time after which a body counts as hung.
	nearly = limit - 10*time.Second
	// hangLimit bounds a wait of the test for a rank, whose body has ended by then unless it hangs.
	hangLimit = limit + time.Minute
	// A short run with the race detector runs one of racedTurns tests with processes.
	racedTurns = 4
	// longestReport bounds the length of an error, which may have the stacks of many goroutines.
	longestReport = 16 << 20
)

// hasMain is set if the package's TestMain calls Main. Without it each process of a rank would run the tests, which
// start processes, and so on.
var hasMain bool

// Main runs the tests, or one rank if this process was started by Start. With every other seed the tests run with at
// least four processors: ranks that are goroutines interact differently if each has its own processor. If the environment
// has GOMAXPROCS, the tests run with that, whatever the seed.
func Main(m *testing.M) {
	hasMain = true
	name := os.Getenv(bodyVariable)
	if name == "" {
		if testsize.Seed()%2 != 0 && os.Getenv("GOMAXPROCS") == "" {
			runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0)))
		}
		os.Exit(m.Run())
	}
	if err := child(name); err != nil {
		report("error", err.Error())
		os.Exit(1)
	}
	report("done", "")
}

func child(name string) error {
	p, ok := parts[name]
	if !ok {
		return fmt.Errorf("jobtest: no body is registered as %q", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go followTest()
	var options []world.Option
	if p.options != nil {
		var err error
		if options, err = p.options(); err != nil {
			return err
		}
	}
	before, err := currentResources()
	if err != nil {
		return err
	}
	w, err := world.Init(ctx, options...)
	if err != nil {
		return err
	}
	watched, stop := context.WithTimeout(ctx, nearly)
	defer stop()
	var hanging atomic.Pointer[string]
	context.AfterFunc(watched, func() {
		if errors.Is(watched.Err(), context.DeadlineExceeded) {
			text := stacks()
			hanging.Store(&text)
		}
	})
	if err := p.body(ctx, w); err != nil {
		if text := hanging.Load(); text != nil {
			err = fmt.Errorf("%w\nwhere it was after %v:\n%s", err, nearly, *text)
		}
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return before.remain(ctx)
}

// stacks returns the stacks of all goroutines, each distinct one once with its count.
func stacks() string {
	var all strings.Builder
	// A Builder returns no errors.
	_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	return all.String()
}

// A Job is a body that runs on processes.
type Job struct {
	t     *testing.T
	ranks []*rank
	// network is nil unless the ranks are on hosts of a network.
	network *nettest.Network
	// server is the ranks' manager.
	server *pmi.Server
}

type rank struct {
	cmd *exec.Cmd
	// words release the rank from Hold.
	words  io.WriteCloser
	output bytes.Buffer

	mu      sync.Mutex
	changed *sync.Cond
	points  map[string]bool
	ended   bool
	err     error
}

// errNoReport reports that the process ended without a report.
var errNoReport = errors.New("ended without a report")

// Start starts n processes for the body. They are killed when the test ends.
func Start(t *testing.T, n int, name string) *Job {
	t.Helper()
	return StartWith(t, n, name, func(int) []string { return nil })
}

// StartWith is like Start, with more variables in the environment of each rank, as KEY=VALUE.
func StartWith(t *testing.T, n int, name string, environment func(rank int) []string) *Job {
	t.Helper()
	return StartOn(t, n, name, environment, func(_ int, program string) *exec.Cmd { return exec.Command(program) })
}

// StartOn is like StartWith, for ranks whose processes the test places. on returns the command that runs program, for
// example on another host of a nettest.Network. A process reaches its manager by a file that it inherits, wherever it
// runs.
func StartOn(t *testing.T, n int, name string, environment func(rank int) []string, on func(rank int, program string) *exec.Cmd) *Job {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks that are processes need Linux")
	}
	if !hasMain {
		t.Fatal("jobtest: ranks that are processes are this test program: its package needs func TestMain(m *testing.M) { jobtest.Main(m) }")
	}
	find(t, name)
	if testsize.Race && testsize.Size() < 1 && !testsize.Turn(int(number(t.Name())%racedTurns), racedTurns) {
		t.Skip("skipped: the race detector sees nothing of what goes on between processes: under -short and with it a quarter of such tests runs, by RMA_TEST_SEED")
	}
	j := &Job{t: t, server: pmi.NewServer(n, pmi.Events{})}
	t.Cleanup(j.end)
	for i := range n {
		r, err := j.start(i, name, append(processors(t.Name(), n), environment(i)...), on)
		if err != nil {
			t.Fatalf("jobtest: starting rank %d: %v", i, err)
		}
		j.ranks = append(j.ranks, r)
	}
	return j
}

// processors returns the variables that give each rank of a test its share of the processors, as rmarun does. For some
// tests it returns none, as other launchers do. A body and the goroutine that makes progress run in parallel only
// without them. Half of the tests have them, and the next seed exchanges the halves.
func processors(test string, ranks int) []string {
	if (number(test)+testsize.Seed())%2 != 0 {
		return nil
	}
	return pmi.Share(ranks)
}

// number returns a number of a test, the same in every run.
func number(test string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, test)
	return h.Sum64() >> 32
}

func (j *Job) start(i int, name string, more []string, on func(rank int, program string) *exec.Cmd) (*rank, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	manager, environment, err := j.server.Child(i, managerFile)
	if err != nil {
		return nil, err
	}
	defer manager.Close()
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	r := &rank{points: make(map[string]bool)}
	r.changed = sync.NewCond(&r.mu)
	r.cmd = on(i, self)
	// With the race detector a process sleeps a second before it ends, unless GORACE says otherwise.
	r.cmd.Env = append(append(os.Environ(), environment...), bodyVariable+"="+name, "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	r.cmd.Env = append(append(r.cmd.Env, testsize.Environment()...), more...)
	r.cmd.ExtraFiles = []*os.File{manager, out}
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	r.words, err = r.cmd.StdinPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	go r.follow(in)
	return r, nil
}

// follow reads a rank's reports until its process has ended.
func (r *rank) follow(in *os.File) {
	defer in.Close()
	err := errNoReport
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestReport)
	for lines.Scan() {
		var word, text string
		if _, e := fmt.Sscanf(lines.Text(), "%s %q", &word, &text); e != nil {
			continue
		}
		switch word {
		case "at":
			r.mu.Lock()
			r.points[text] = true
			r.mu.Unlock()
			r.changed.Broadcast()
		case "done":
			err = nil
		case "error":
			err = errors.New(text)
		}
	}
	if e := r.cmd.Wait(); e != nil && (err == nil || errors.Is(err, errNoReport)) {
		err = fmt.Errorf("%w: %w\n%s", errNoReport, e, r.output.Bytes())
	}
	r.mu.Lock()
	r.ended, r.err = true, err
	r.mu.Unlock()
	r.changed.Broadcast()
}

func (j *Job) end() {
	for _, r := range j.ranks {
		_ = r.cmd.Process.Kill()
	}
	for _, r := range j.ranks {
		r.mu.Lock()
		for !r.ended {
			r.changed.Wait()
		}
		r.mu.Unlock()
	}
	_ = j.server.Close()
}
