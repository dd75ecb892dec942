package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onesided/rma/world/pmi"
)

// job is the ranks that run.
type job struct {
	options *options
	server  *pmi.Server
	// out and errout are where the ranks' output goes, lines how many have gone there.
	out, errout *output
	lines       atomic.Uint64
	ranks       []*rank
	ends        chan end
	lost        chan int
	late        chan *rank
	aborts      chan abort

	// What follows belongs to the goroutine of watch. failed are in the order in which
	// they ended.
	failed  []*rank
	aborted *abort
	// ending tells that a signal has come to rmarun which is to end the ranks,
	// interrupted that this was SIGINT, stopping that rmarun itself ends them.
	ending, interrupted, stopping bool
	grace                         <-chan time.Time
}

type abort struct{ rank, status int }

// An end is that of a rank's process, and then, silent, that of what it has to say.
type end struct {
	rank   *rank
	silent bool
}

type rank struct {
	number int
	cmd    *exec.Cmd
	kept   tail
	copied sync.WaitGroup
	// err is there when the rank's end is known.
	err error
	// done, asked and lost belong to the goroutine of watch. asked tells that the rank has
	// failed because all were to end, lost that its connection has ended before its World
	// was closed, of which nothing has been said.
	done, asked, lost bool
}

// run runs a job and gives its exit status.
func run(o *options) (status int, err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	building, built := signal.NotifyContext(context.Background(), ending...)
	program, remove, err := find(building, o.program)
	built()
	if err != nil {
		return 1, err
	}
	defer remove()
	j := &job{
		options: o,
		ends:    make(chan end, 2*o.ranks), lost: make(chan int, o.ranks), late: make(chan *rank, o.ranks), aborts: make(chan abort, o.ranks),
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

// watch waits until all ranks have ended and gives the exit status.
func (j *job) watch(signals <-chan os.Signal) int {
	for running := len(j.ranks); running > 0; {
		select {
		case e := <-j.ends:
			if e.silent {
				running--
				j.sweep(e.rank)
			} else {
				j.end(e.rank)
			}
		case number := <-j.lost:
			// The rank has ended, of which the end comes of itself, or closed its
			// connection and goes on, which others wait for in vain.
			if r := j.ranks[number]; !j.lose(r) {
				time.AfterFunc(j.options.leaveTime, func() { j.late <- r })
			}
		case r := <-j.late:
			if !r.done && !j.stopping {
				r.lost = false
				fmt.Fprintf(os.Stderr, "rmarun: rank %d has left the job without closing its World, and goes on\n", r.number)
			}
		case a := <-j.aborts:
			j.abort(a)
		case s := <-signals:
			j.forward(s.(syscall.Signal))
		case <-j.grace:
			j.signal(syscall.SIGKILL)
		}
	}
	j.settle()
	j.summarize()
	return j.status()
}

// settle hears how the connections of ranks that have ended did, which takes no time but where somebody has inherited one.
func (j *job) settle() {
	served := make(chan struct{})
	go func() {
		j.server.Wait()
		close(served)
	}()
	for limit := time.After(j.options.leaveTime); ; {
		select {
		case number := <-j.lost:
			j.lose(j.ranks[number])
		case <-limit:
			j.hearAborts()
			return
		case <-served:
			j.hearAborts()
			for len(j.lost) > 0 {
				j.lose(j.ranks[<-j.lost])
			}
			return
		}
	}
}

// hearAborts takes note of what ranks have said before their connections ended.
func (j *job) hearAborts() {
	for len(j.aborts) > 0 {
		j.abort(<-j.aborts)
	}
}

// abort takes note of a rank that has aborted the job.
func (j *job) abort(a abort) {
	if j.aborted == nil {
		j.aborted = &a
		fmt.Fprintf(os.Stderr, "rmarun: rank %d aborted the job with status %d\n", a.rank, a.status)
	}
	j.stop()
}

// lose takes note of a rank whose connection has ended without a word, and tells whether the rank has ended, too.
func (j *job) lose(r *rank) (ended bool) {
	j.hearAborts()
	r.lost = true
	j.unclosed(r)
	return r.done
}

// end takes note of a rank whose process has ended.
func (j *job) end(r *rank) {
	r.done = true
	j.unclosed(r)
	if r.err != nil {
		r.asked = j.stopping || j.ending
		j.failed = append(j.failed, r)
		j.stop()
	}
}

// unclosed says of a rank which has ended as if all were well that others may wait for it. A failure is told anyway.
func (j *job) unclosed(r *rank) {
	if r.lost && r.done && r.err == nil && !j.stopping {
		fmt.Fprintf(os.Stderr, "rmarun: rank %d has ended without closing its World\n", r.number)
	}
}

// stop has all ranks end, unless they are to go on.
func (j *job) stop() {
	if j.stopping || j.options.keepGoing && !j.interrupted && j.aborted == nil {
		return
	}
	j.stopping = true
	if j.grace != nil {
		// A signal that is to end them has been forwarded.
		return
	}
	j.signal(syscall.SIGTERM)
	j.grace = time.After(j.options.grace)
}

// forward passes a signal on to the ranks, or ends them if it is a second SIGINT. Those that have not ended some time after
// another signal that is to end them are ended, too.
func (j *job) forward(s syscall.Signal) {
	if s == syscall.SIGINT && j.interrupted {
		j.signal(syscall.SIGKILL)
		return
	}
	if slices.Contains(ending, os.Signal(s)) {
		j.ending = true
		if s != syscall.SIGINT && j.grace == nil {
			j.grace = time.After(j.options.grace)
		}
	}
	j.interrupted = j.interrupted || s == syscall.SIGINT
	j.signal(s)
}

// signal sends a signal to every rank that runs.
func (j *job) signal(s syscall.Signal) {
	for _, r := range j.ranks {
		if !r.done {
			_ = r.cmd.Process.Signal(s)
			if s == syscall.SIGKILL {
				j.sweep(r)
			}
		}
	}
}

// sweep ends what a rank has left behind: the processes of its group.
func (j *job) sweep(r *rank) { _ = endGroup(r.cmd.Process.Pid) }

// endAll ends a job that could not be started whole.
func (j *job) endAll() {
	j.signal(syscall.SIGKILL)
	for range 2 * len(j.ranks) {
		<-j.ends
	}
}
