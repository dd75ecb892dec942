package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/interrupt"
)

// A job is the ranks and their state.
type job struct {
	options *options
	server  *pmi.Server
	// inherited are the children that rmarun had before it started any: those of a shell that became rmarun by exec.
	inherited []int
	// out and errout receive the ranks' output. lines counts their lines.
	out, errout *output
	lines       atomic.Uint64
	ranks       []*rank
	// processes are the ranks whose process has not ended, by process number.
	processes map[int]*rank
	// blames has the rank that each rank blames, or nil. unjoined marks the ranks that could not join.
	blames   []atomic.Pointer[blame]
	unjoined []atomic.Bool
	events

	// The following fields belong to the goroutine of watch. running counts ranks that are not over.
	running int
	outcome
	// stopping: rmarun ends the ranks. killed: their grace is over. abandoned: their output is no longer waited for.
	// suspended: they are stopped.
	stopping, killed, abandoned, suspended bool
	// reporting fires when, after the first failure, rmarun ends the others. grace fires when it kills them.
	reporting, grace <-chan time.Time

	terminal *terminal
	// listeners maps signal listeners to their ranks. The terminal has sent typedSignal to the group of typedTo, which
	// must not get it again.
	listeners   map[int]*rank
	typedSignal syscall.Signal
	typedTo     *rank
}

// events are the events for which watch waits.
type events struct {
	changes chan change
	// silent receives each rank whose streams have ended, overdue each rank whose process ended outputTime ago.
	silent, overdue chan *rank
	// lost receives each rank that has lost its connection, and late each rank that did leaveTime ago.
	lost   chan int
	late   chan *rank
	aborts chan abort
}

// outcome is the reason why the ranks end.
type outcome struct {
	// failed are in the order in which they ended.
	failed  []*rank
	aborted *abort
	// ending is the first signal to rmarun that ends the ranks, if nothing had ended them before. interrupted: one of
	// the signals was SIGINT. needsTerminal: a rank needs a terminal to continue, and cannot have one.
	ending                     syscall.Signal
	interrupted, needsTerminal bool
}

type abort struct{ rank, status int }

// A blame is a rank's report that a rank, another or itself, has failed, or has left while it was needed.
type blame struct {
	rank int
	left bool
}

type rank struct {
	number, pid int
	life        deathPipe
	kept        tail
	streams     []*stream
	// status is valid when the process has ended.
	status syscall.WaitStatus
	// The following fields belong to the goroutine of watch. done: the process has ended. silent: its streams have
	// ended. overdue: only bytes that are in the streams already are read. over: nothing of the rank is waited for.
	done, silent, overdue, over bool
	// terminated: the rank has failed because all were to end. lost: its connection has ended before its World was
	// closed, which is yet to be printed.
	terminated, lost bool
}

// run runs a job and returns its exit status. It waits for all children of this process.
func run(o *options) (status int, err error) {
	signals := make(chan os.Signal, 16)
	interrupt.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	building, built := interrupt.Context(context.Background(), ending...)
	program, remove, err := find(building, o.program)
	built()
	if ended := (interrupt.Error{}); errors.As(err, &ended) {
		return 128 + int(ended.Signal.(syscall.Signal)), err
	}
	if err != nil {
		return 1, err
	}
	defer remove()
	interrupt.Notify(signals, suspending...)
	inherited := children()
	adopt()
	j := &job{
		options: o, inherited: inherited, running: o.ranks, terminal: openTerminal(), processes: make(map[int]*rank), listeners: make(map[int]*rank),
		blames: make([]atomic.Pointer[blame], o.ranks), unjoined: make([]atomic.Bool, o.ranks),
		events: events{
			changes: make(chan change), silent: make(chan *rank, o.ranks), overdue: make(chan *rank, o.ranks),
			lost: make(chan int, o.ranks), late: make(chan *rank, o.ranks), aborts: make(chan abort, o.ranks),
		},
	}
	defer j.terminal.takeBack()
	j.out, j.errout = newOutputs(os.Stdout, os.Stderr, &j.lines)
	j.server = pmi.NewServer(o.ranks, pmi.Events{
		Gone:      func(rank int) { j.lost <- rank },
		Abort:     func(rank, status int) { j.aborts <- abort{rank, status} },
		Blame:     j.blame,
		NotJoined: func(rank int) { j.unjoined[rank].Store(true) },
	})
	defer j.server.Close()
	err = j.start(program)
	go reap(j.changes)
	if err != nil {
		j.signal(syscall.SIGKILL)
		j.endAdopted()
		return 1, err
	}
	// Running processes do not need the file, and killed processes cannot remove it.
	remove()
	return j.watch(signals), nil
}

// watch waits until all ranks are over and returns the exit status.
func (j *job) watch(signals <-chan os.Signal) int {
	for j.running > 0 {
		select {
		case c := <-j.changes:
			j.change(c)
		case r := <-j.silent:
			r.silent = true
			j.conclude(r)
		case r := <-j.overdue:
			r.overdue = true
			r.finish()
			j.conclude(r)
		case number := <-j.lost:
			// The rank has ended, and its end follows as an event. Or it has closed its connection and continues,
			// although other ranks wait for it.
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
		case <-j.reporting:
			j.endOthers()
		case <-j.grace:
			j.abandoned = j.ending != 0 || j.interrupted
			j.kill()
		}
	}
	j.endAdopted()
	j.settle()
	j.summarize()
	return j.status()
}

// change handles a child that has ended or stopped.
func (j *job) change(c change) {
	switch r := j.processes[c.pid]; {
	case r == nil:
		if r := j.listeners[c.pid]; r != nil {
			delete(j.listeners, c.pid)
			j.listenerEnded(r, c)
		}
		// It may have been the last of the group of a rank.
		for _, r := range j.ranks {
			j.conclude(r)
		}
	case c.status.Exited() || c.status.Signaled():
		delete(j.processes, c.pid)
		r.status = c.status
		j.end(r)
		time.AfterFunc(j.options.outputTime, func() { j.overdue <- r })
		j.conclude(r)
	case c.status.StopSignal() == syscall.SIGTTIN || c.status.StopSignal() == syscall.SIGTTOU:
		j.handleTerminalStop(r, c.status.StopSignal())
	}
}

// conclude makes a rank over if its process has ended and its output has been passed on or is no longer waited for.
// It kills the rank's group, after the grace if the job has one.
func (j *job) conclude(r *rank) {
	if r.over || !r.done || !r.silent && !(r.overdue && j.abandoned) {
		return
	}
	// The signal listener is in the group, too.
	if j.terminal != nil && j.terminal.reader == r {
		j.terminal.takeBack()
	}
	if j.grace != nil && !j.killed && syscall.Kill(-r.pid, 0) == nil {
		return
	}
	r.over = true
	j.running--
	signalGroup(r.pid, syscall.SIGKILL)
}

// endAdopted ends the processes that have left the group of their rank and that this process has adopted. Each end
// may bring more of them.
func (j *job) endAdopted() {
	for limit := time.After(j.options.leaveTime); ; {
		left := slices.DeleteFunc(children(), func(pid int) bool { return slices.Contains(j.inherited, pid) })
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case _, more := <-j.changes:
			if !more {
				return
			}
		case <-limit:
			return
		}
	}
}

// settle waits for the ends of the connections of ranks that have ended. That takes no time, unless another process
// has inherited one.
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
			j.drainAborts()
			return
		case <-served:
			j.drainAborts()
			for len(j.lost) > 0 {
				j.lose(j.ranks[<-j.lost])
			}
			return
		}
	}
}

// drainAborts handles the aborts of ranks before the ends of their connections.
func (j *job) drainAborts() {
	for len(j.aborts) > 0 {
		j.abort(<-j.aborts)
	}
}

// blame records which rank a rank blames. Goroutines of the server call it.
func (j *job) blame(rank, blamed int, left bool) {
	if blamed == pmi.NoRank {
		j.blames[rank].Store(nil)
		j.unjoined[rank].Store(false)
		return
	}
	j.blames[rank].Store(&blame{blamed, left})
}

// abort records that a rank has aborted the job.
func (j *job) abort(a abort) {
	if j.aborted == nil {
		j.aborted = &a
		fmt.Fprintf(os.Stderr, "rmarun: rank %d aborted the job with status %d\n", a.rank, a.status)
	}
	j.endOthers()
}

// lose records that a rank's connection has ended without Finalize. It reports whether the rank has ended, too.
func (j *job) lose(r *rank) (ended bool) {
	j.drainAborts()
	r.lost = true
	j.unclosed(r)
	return r.done
}

// end records that a rank's process has ended.
func (j *job) end(r *rank) {
	r.done = true
	j.unclosed(r)
	if r.status != 0 {
		r.terminated = j.stopping || j.ending != 0
		j.failed = append(j.failed, r)
		j.endForFailure()
	}
}

// unclosed reports that a rank which ended with status 0 did not close its World, so that others may wait for it. A
// failure is reported anyway.
func (j *job) unclosed(r *rank) {
	if !r.lost || !r.done || r.status != 0 || j.stopping {
		return
	}
	how := "closing its World"
	if j.unjoined[r.number].Load() {
		how = "joining the job: its Init failed"
	}
	fmt.Fprintf(os.Stderr, "rmarun: rank %d has ended without %s\n", r.number, how)
}

// endForFailure ends the job because a rank has failed, unless the others are to continue. The failure may be a
// result of another rank's, which has yet to be reported. So all ranks have reportTime.
func (j *job) endForFailure() {
	if j.stopping || j.reporting != nil || j.options.keepGoing && !j.interrupted {
		return
	}
	j.reporting = time.After(j.options.reportTime)
}

// endOthers ends the remaining ranks, at once.
func (j *job) endOthers() {
	j.reporting = nil
	j.stopping = true
	if j.grace == nil {
		j.terminate(syscall.SIGTERM)
	}
}

// terminate sends a signal that ends the ranks. The first one begins the grace.
func (j *job) terminate(s syscall.Signal) {
	if j.grace == nil {
		j.grace = time.After(j.options.grace)
	}
	j.signal(s)
	if j.suspended {
		j.resume()
	}
}

// forward handles a signal to rmarun.
func (j *job) forward(s syscall.Signal) {
	switch s {
	case syscall.SIGTSTP:
		j.suspend()
	case syscall.SIGCONT:
		j.resume()
	case syscall.SIGUSR1, syscall.SIGUSR2:
		for _, r := range j.ranks {
			if !r.done {
				_ = syscall.Kill(r.pid, s)
			}
		}
	default:
		if j.killed || s == syscall.SIGINT && j.interrupted {
			j.abandoned = true
			j.kill()
			break
		}
		j.interrupted = j.interrupted || s == syscall.SIGINT
		if j.ending == 0 && !j.stopping {
			j.ending = s
		}
		j.terminate(s)
	}
	j.typedTo = nil
}

// suspend stops the ranks, and rmarun, for which its shell waits. On a terminal without a shell that could continue
// them it does nothing, as for any other program.
func (j *job) suspend() {
	if j.terminal != nil && orphaned() {
		j.resume()
		return
	}
	j.suspended = true
	j.signal(syscall.SIGTSTP)
	stopSelf()
}

func (j *job) resume() {
	j.suspended = false
	j.signal(syscall.SIGCONT)
}

// kill ends the grace of the ranks.
func (j *job) kill() {
	j.killed = true
	j.signal(syscall.SIGKILL)
	for _, r := range j.ranks {
		j.conclude(r)
	}
}

// signal sends a signal to the group of every rank that is not over, except one that has got it already.
func (j *job) signal(s syscall.Signal) {
	j.terminal.takeBack()
	for _, r := range j.ranks {
		if !r.over && (r != j.typedTo || s != j.typedSignal) {
			signalGroup(r.pid, s)
		}
	}
}
