package jobtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/pmi"
)

const (
	bodyVariable = "RMA_JOBTEST_BODY"
	// The files that a rank inherits: its manager, and the pipe for its reports.
	managerFile = 3
	reportFile  = 4
	// limit bounds a job; its ranks are killed after it.
	limit = 2 * time.Minute
	// longestReport is what an error may be that has the stacks of many goroutines.
	longestReport = 16 << 20
)

// Main runs the tests, or, in a process that Start has started, one rank.
func Main(m *testing.M) {
	name := os.Getenv(bodyVariable)
	if name == "" {
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
	go endWithParent(os.Getppid())
	var options []world.Option
	if p.options != nil {
		var err error
		if options, err = p.options(); err != nil {
			return err
		}
	}
	before, err := holdings()
	if err != nil {
		return err
	}
	w, err := world.Init(ctx, options...)
	if err != nil {
		return err
	}
	if err := p.body(ctx, w); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return before.remain(ctx)
}

// endWithParent ends this process soon after the one of the test, which may end
// without having ended this.
func endWithParent(parent int) {
	for range time.Tick(time.Second) {
		if os.Getppid() != parent {
			os.Exit(3)
		}
	}
}

var reports = sync.OnceValue(func() *os.File { return os.NewFile(reportFile, "reports") })

// report tells the test how a rank does: a word and a text, on a line.
func report(word, text string) {
	_, _ = fmt.Fprintf(reports(), "%s %q\n", word, text)
}

// Signal tells the test, in Job.Await, that the rank has come to a point. In ranks
// that are goroutines it does nothing.
func Signal(point string) {
	if os.Getenv(bodyVariable) != "" {
		report("at", point)
	}
}

var words = sync.OnceValue(func() *bufio.Reader { return bufio.NewReader(os.Stdin) })

// Hold is a Signal that returns when the test has called Job.Release for the rank, once
// for each Hold. In ranks that are goroutines it does nothing.
func Hold(point string) error {
	if os.Getenv(bodyVariable) == "" {
		return nil
	}
	report("at", point)
	if _, err := words().ReadString('\n'); err != nil {
		return fmt.Errorf("jobtest: held at %q: %w", point, err)
	}
	return nil
}

// A Job is a body that runs over processes.
type Job struct {
	t     *testing.T
	ranks []*rank
	// server is the ranks' manager.
	server *pmi.Server
}

type rank struct {
	cmd *exec.Cmd
	// words let the rank go on from Hold.
	words  io.WriteCloser
	output bytes.Buffer

	mu      sync.Mutex
	changed *sync.Cond
	points  map[string]bool
	ended   bool
	err     error
}

// errNoReport: the process ended without a word.
var errNoReport = errors.New("ended without a report")

// Start starts n processes for the body. They are killed when the test ends.
func Start(t *testing.T, n int, name string) *Job {
	t.Helper()
	return StartWith(t, n, name, func(int) []string { return nil })
}

// StartWith is Start with more in the environment of each rank, as KEY=VALUE.
func StartWith(t *testing.T, n int, name string, environment func(rank int) []string) *Job {
	t.Helper()
	return StartOn(t, n, name, environment, func(_ int, program string) *exec.Cmd { return exec.Command(program) })
}

// StartOn is StartWith for ranks whose processes the test places: on gives the command
// that runs the program, such as one on another host of a nettest.Network. The manager
// is reached by a file that the process inherits, wherever it is.
func StartOn(t *testing.T, n int, name string, environment func(rank int) []string, on func(rank int, program string) *exec.Cmd) *Job {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks that are processes need Linux")
	}
	find(t, name)
	j := &Job{t: t, server: pmi.NewServer(n, pmi.Events{})}
	t.Cleanup(j.end)
	for i := range n {
		r, err := j.start(i, name, environment(i), on)
		if err != nil {
			t.Fatalf("jobtest: starting rank %d: %v", i, err)
		}
		j.ranks = append(j.ranks, r)
	}
	return j
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
	// With the race detector a process sleeps a second before it ends, unless it
	// is told not to.
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

// await returns when ready says so, or fails the test.
func (j *Job) await(what string, r *rank, ready func() bool) {
	j.t.Helper()
	timer := time.AfterFunc(limit, func() {
		_ = r.cmd.Process.Kill()
		r.changed.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !ready() {
		if r.ended {
			j.t.Fatalf("jobtest: waiting for %s: the rank's process has ended: %v", what, r.err)
		}
		r.changed.Wait()
	}
}

// Await returns when a rank has come to a point that its body signals.
func (j *Job) Await(rank int, point string) {
	j.t.Helper()
	r := j.ranks[rank]
	j.await(fmt.Sprintf("rank %d at %q", rank, point), r, func() bool { return r.points[point] })
}

// Release lets a rank go on that is in Hold, or will be.
func (j *Job) Release(rank int) {
	j.t.Helper()
	if _, err := fmt.Fprintln(j.ranks[rank].words); err != nil {
		j.t.Fatalf("jobtest: releasing rank %d: %v", rank, err)
	}
}

// Kill ends a rank's process by SIGKILL.
func (j *Job) Kill(rank int) {
	j.t.Helper()
	if err := j.ranks[rank].cmd.Process.Kill(); err != nil {
		j.t.Fatalf("jobtest: killing rank %d: %v", rank, err)
	}
}

// Killed kills a rank when all have signalled "ready". The test fails unless the bodies of all others end
// without an error.
func (j *Job) Killed(victim int) {
	j.t.Helper()
	for rank := range j.ranks {
		j.Await(rank, "ready")
	}
	killed := time.Now()
	j.Kill(victim)
	for rank, err := range j.Wait() {
		switch {
		case rank == victim && (err == nil || !strings.Contains(err.Error(), "killed")):
			j.t.Errorf("jobtest: rank %d was killed, and has ended with: %v", rank, err)
		case rank != victim && err != nil:
			j.t.Errorf("jobtest: rank %d: %v", rank, err)
		}
	}
	j.t.Logf("%v from the kill to the end of all", time.Since(killed))
}

// pid is the number of a rank's process.
func (j *Job) pid(rank int) int { return j.ranks[rank].cmd.Process.Pid }

// Wait returns when all processes have ended, with the ranks' errors.
func (j *Job) Wait() []error {
	j.t.Helper()
	errs := make([]error, len(j.ranks))
	for i, r := range j.ranks {
		j.await(fmt.Sprintf("the end of rank %d", i), r, func() bool { return r.ended })
		errs[i] = r.err
	}
	return errs
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
