package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onesided/rma/world/pmi"
)

// managerFile is the descriptor at which a rank finds its manager.
const managerFile = 3

// job is the ranks that run.
type job struct {
	options *options
	server  *pmi.Server
	// out and errout are where the ranks' output goes, lines how many have gone there.
	out, errout *output
	lines       atomic.Uint64
	ranks       []*rank
	ended       chan *rank
	lost        chan int
	aborts      chan abort
}

type abort struct{ rank, status int }

type rank struct {
	number int
	cmd    *exec.Cmd
	kept   tail
	copied sync.WaitGroup
	// done, err and asked belong to the goroutine of run.
	done  bool
	err   error
	asked bool
}

// run runs a job and gives its exit status.
func run(o *options) (status int, err error) {
	program, remove, err := find(o.program)
	if err != nil {
		return 1, err
	}
	defer remove()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	j := &job{
		options: o,
		ended:   make(chan *rank, o.ranks), lost: make(chan int, o.ranks), aborts: make(chan abort, o.ranks),
	}
	j.out, j.errout = &output{to: os.Stdout, lines: &j.lines}, &output{to: os.Stderr, lines: &j.lines}
	j.server = pmi.NewServer(o.ranks, pmi.Events{
		Gone:  func(rank int) { j.lost <- rank },
		Abort: func(rank, status int) { j.aborts <- abort{rank, status} },
	})
	defer j.server.Close()
	if err := j.start(program); err != nil {
		j.endAll()
		return 1, err
	}
	// What runs needs its file no more, and what is killed cannot remove it.
	remove()
	return j.watch(signals), nil
}

// start starts all ranks. A rank's death signal is tied to the thread that starts
// it, so one thread, which lives as long as rmarun, starts them all.
func (j *job) start(program string) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- j.startAll(program)
		select {}
	}()
	return <-started
}

func (j *job) startAll(program string) error {
	for number := range j.options.ranks {
		r, err := j.startRank(program, number)
		if err != nil {
			return fmt.Errorf("starting rank %d: %w", number, err)
		}
		j.ranks = append(j.ranks, r)
	}
	return nil
}

func (j *job) startRank(program string, number int) (*rank, error) {
	manager, environment, err := j.server.Child(number, managerFile)
	if err != nil {
		return nil, err
	}
	defer manager.Close()
	r := &rank{number: number, cmd: exec.Command(program, j.options.arguments...)}
	r.cmd.Env = append(os.Environ(), environment...)
	r.cmd.Env = append(r.cmd.Env, fmt.Sprintf("MPI_LOCALRANKID=%d", number), fmt.Sprintf("MPI_LOCALNRANKS=%d", j.options.ranks))
	r.cmd.Env = append(r.cmd.Env, j.options.environment...)
	r.cmd.ExtraFiles = []*os.File{manager}
	r.cmd.SysProcAttr = attributes()
	if number == 0 {
		if r.cmd.Stdin, err = standardInput(); err != nil {
			return nil, err
		}
	}
	label := ""
	if j.options.label {
		label = fmt.Sprintf("[%*d] ", len(fmt.Sprint(j.options.ranks-1)), number)
	}
	var writers []io.Closer
	defer func() {
		for _, w := range writers {
			_ = w.Close()
		}
	}()
	for _, s := range []struct {
		into *io.Writer
		out  *output
	}{{&r.cmd.Stdout, j.out}, {&r.cmd.Stderr, j.errout}} {
		from, to, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		writers = append(writers, to)
		*s.into = to
		r.copied.Go(func() {
			stream(from, s.out, label, &r.kept)
			_ = from.Close()
		})
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		r.err = r.cmd.Wait()
		r.waitOutput()
		j.ended <- r
	}()
	return r, nil
}

// standardInput is rmarun's, for rank 0. A terminal gives its input to the process
// group in the foreground only, which the rank is not in: that is copied.
func standardInput() (*os.File, error) {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return os.Stdin, nil
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(to, os.Stdin)
		_ = to.Close()
	}()
	return from, nil
}

// outputTime is how long the output of a rank that has ended is waited for: a
// process that it left behind may hold its streams.
const outputTime = time.Second

func (r *rank) waitOutput() {
	copied := make(chan struct{})
	go func() {
		r.copied.Wait()
		close(copied)
	}()
	select {
	case <-copied:
	case <-time.After(outputTime):
	}
}

// watch waits until all ranks have ended and gives the exit status.
func (j *job) watch(signals <-chan os.Signal) int {
	var failed []*rank
	var aborted *abort
	var grace <-chan time.Time
	interrupted, signalled := false, false
	stopping := false
	stop := func() {
		if stopping || j.options.keepGoing && !interrupted && aborted == nil {
			return
		}
		stopping = true
		j.signal(syscall.SIGTERM)
		grace = time.After(j.options.grace)
	}
	for running := len(j.ranks); running > 0; {
		select {
		case r := <-j.ended:
			running--
			r.done = true
			j.end(r)
			if r.err != nil {
				r.asked = stopping || signalled
				failed = append(failed, r)
				stop()
			}
		case number := <-j.lost:
			// The rank has ended, which comes of itself, or closed its
			// connection and goes on, which others wait for in vain.
			if r := j.ranks[number]; !r.done && !stopping {
				fmt.Fprintf(os.Stderr, "rmarun: rank %d has left the job without finalizing\n", number)
			}
		case a := <-j.aborts:
			if aborted == nil {
				aborted = &a
				fmt.Fprintf(os.Stderr, "rmarun: rank %d aborted the job with status %d\n", a.rank, a.status)
			}
			stop()
		case s := <-signals:
			if s == os.Interrupt && interrupted {
				j.signal(syscall.SIGKILL)
				continue
			}
			signalled = true
			interrupted = interrupted || s == os.Interrupt
			j.signal(s.(syscall.Signal))
		case <-grace:
			j.signal(syscall.SIGKILL)
		}
	}
	j.summarize(failed)
	switch {
	case aborted != nil:
		return aborted.status
	case len(failed) > 0:
		return failed[0].status()
	case j.out.failed() || j.errout.failed():
		return 1
	}
	return 0
}

// signal sends a signal to every rank that runs.
func (j *job) signal(s syscall.Signal) {
	for _, r := range j.ranks {
		if !r.done {
			_ = r.cmd.Process.Signal(s)
			if s == syscall.SIGKILL {
				j.end(r)
			}
		}
	}
}

// end ends what a rank has left behind: the processes of its group.
func (j *job) end(r *rank) { _ = endGroup(r.cmd.Process.Pid) }

// endAll ends a job that could not be started whole.
func (j *job) endAll() {
	j.signal(syscall.SIGKILL)
	for range j.ranks {
		<-j.ended
	}
}

// status is a rank's exit status as a shell gives it.
func (r *rank) status() int {
	var exit *exec.ExitError
	if !errors.As(r.err, &exit) {
		return 1
	}
	if wait, ok := exit.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return exit.ExitCode()
}

// summarize names the ranks that failed by themselves.
func (j *job) summarize(failed []*rank) {
	told := 0
	for _, r := range failed {
		if r.asked {
			told++
			continue
		}
		fmt.Fprintf(os.Stderr, "rmarun: rank %d failed: %v\n", r.number, r.err)
		lines := r.kept.unseen(j.lines.Load())
		if len(lines) > 0 {
			fmt.Fprintf(os.Stderr, "rmarun: the last lines of rank %d:\n", r.number)
		}
		for _, line := range lines {
			fmt.Fprintf(os.Stderr, "    %s\n", strings.TrimRight(string(line), "\n"))
		}
	}
	switch {
	case told == 1:
		fmt.Fprintln(os.Stderr, "rmarun: 1 further rank was ended")
	case told > 1:
		fmt.Fprintf(os.Stderr, "rmarun: %d further ranks were ended\n", told)
	}
}
