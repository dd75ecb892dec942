package sim

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"strings"
	"time"
)

// forever is a time that never comes.
const forever = time.Duration(math.MaxInt64)

// A task is a goroutine of the program. The goroutine of Run and those of the tasks pass the turn to each other as
// coroutines. That costs a quarter of a channel operation and does not involve the scheduler.
//
// The fields that each turn needs come first, in one cache line.
type task struct {
	next  func() (struct{}, bool)
	yield func(struct{}) bool
	local time.Duration
	// channel is what the task sleeps on, or slept on last, nil if it only let time pass. deadline ends the wait.
	// nextSleeper is the next sleeper on the same channel.
	channel     *eventChannel
	deadline    time.Duration
	nextSleeper *task
	lane        uint32
	// killed: the task's rank was killed, and it ends at its next turn.
	killed bool
	// queued: it is runnable, and has not had its turn.
	asleep, queued bool
	// begun: it has had a turn. sleeping: it waits in the Sleep of a channel.
	begun, sleeping bool
	number          int

	name string
	// device is that of the task's rank, nil if it belongs to none.
	device *Device
	stop   func()
	// polls is how often it has polled since it was killed.
	polls int
}

// Go adds a task, which begins when Run first gives it the turn. It begins at the time of the task that called Go, if
// one did, and belongs to that task's rank. Run returns when all tasks have ended.
//
// Tasks wait for each other only through devices: a task that blocks on a channel or a mutex that another task has to
// free blocks all of them. A goroutine that a task starts is not a task, and must not use devices, except to ring their
// channels.
func (s *Simulator) Go(name string, body func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of *Device
	if s.current != nil {
		of = s.current.device
	}
	s.begin(of, name, *s.local(), body)
}

// Go adds a task of the device's rank. It is like a task of [Simulator.Go], but ends with the rank if that is killed:
// as by runtime.Goexit where it sleeps on a channel, or would sleep next. Until then, and in its deferred functions,
// its calls of devices have no effect, find nothing, and return verbs.ErrClosed if they return an error. A poll does
// not end it, because it may hold locks there that its deferred functions need. But it ends after a thousand polls
// without sleeping.
func (d *Device) Go(name string, body func()) {
	s := d.sim
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(d, name, *s.local(), body)
}

// begin adds a task of a rank, or of none, whose clock begins at a time. A dead rank begins no task.
func (s *Simulator) begin(of *Device, name string, at time.Duration, body func()) {
	if s.dying() || of != nil && of.dead {
		return
	}
	t := &task{number: len(s.tasks), name: name, device: of, lane: s.lane(), local: at}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield, t.begun = yield, true
		s.mu.Unlock()
		defer s.mu.Lock()
		body()
	})
	s.tasks = append(s.tasks, t)
	s.live++
	s.enqueue(t)
}

// enqueue gives a task a turn.
func (s *Simulator) enqueue(t *task) {
	t.queued = true
	*s.runnable.extend() = t
}

// dequeue returns the task whose turn it is.
func (s *Simulator) dequeue() *task {
	t := *s.runnable.at(0)
	s.runnable.drop(1)
	t.queued = false
	return t
}

// Run runs the tasks until all have ended. If they wait for what never comes (see [Simulator.Patience]), it ends them
// as by runtime.Goexit and returns a *DeadlockError. While Run runs, only tasks may use the simulator and its devices.
// A panic, or a runtime.Goexit, of a task becomes one of Run's caller, after the other tasks have been ended.
func (s *Simulator) Run() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return fmt.Errorf("sim: Run: %w", errRunning)
	}
	s.running = true
	defer s.end()
	s.active = s.now
	for s.live > 0 {
		if s.exhausted() {
			return s.deadlock()
		}
		if s.runnable.count > 0 {
			s.turn(s.dequeue())
			continue
		}
		if !s.step(forever - 1) {
			return s.deadlock()
		}
	}
	return nil
}

var errRunning = errors.New("the simulator is running already")

// turn gives a task the turn until it gives it back, and mu with it. A task that waits holds mu, and so does one that
// has ended, in whatever way.
func (s *Simulator) turn(t *task) {
	if t.killed {
		if panicked := s.unwind(t); panicked != nil {
			panic(panicked)
		}
		return
	}
	for {
		s.current = t
		_, more := t.next()
		s.current = nil
		switch {
		case !more:
			t.next = nil
			s.live--
			return
		case !s.settling:
			s.rest(t)
			return
		case !s.settled(t):
			return
		}
	}
}

// settled settles for a task that has given the turn back for that, and reports whether the task can continue. Other
// runnable tasks have their turn before.
func (s *Simulator) settled(t *task) bool {
	s.settling = false
	for s.runnable.count == 0 && s.step(t.local) {
	}
	if s.runnable.count > 0 {
		t.channel, t.deadline = nil, t.local
		s.rest(t)
		return false
	}
	s.now = max(s.now, t.local)
	return true
}

// end ends the remaining tasks, one after the other.
func (s *Simulator) end() {
	var panicked any
	// The task that had the turn may have panicked.
	s.current = nil
	for i := 0; i < len(s.tasks); i++ {
		if t := s.tasks[i]; t.next != nil {
			if value := s.unwind(t); panicked == nil {
				panicked = value
			}
		}
	}
	s.tasks, s.live = nil, 0
	s.runnable = ring[*task]{}
	s.running = false
	s.outside = max(s.outside, s.now)
	if panicked != nil {
		panic(panicked)
	}
}

// unwind ends a task, and returns a panic of it. If the task does not sleep, it continues without waiting until it
// does.
func (s *Simulator) unwind(t *task) (panicked any) {
	s.deadlines.remove(t)
	if t.asleep && t.channel != nil {
		t.channel.forget(t)
	}
	t.asleep = false
	s.current, s.unwinding = t, true
	ended := make(chan any)
	// A goroutine of its own, because the task's Goexit also ends the goroutine that stops it.
	go func() {
		defer func() { ended <- recover() }()
		if t.begun && !t.sleeping {
			t.next()
			return
		}
		t.stop()
	}()
	panicked = <-ended
	s.current, s.unwinding = nil, false
	t.next = nil
	s.live--
	return panicked
}

// kill makes a task end at its next turn, which it gets without having to wait.
func (s *Simulator) kill(t *task) {
	if t.next == nil || t.killed {
		return
	}
	t.killed = true
	switch {
	case t.asleep:
		s.wake(t)
	case !t.queued:
		s.enqueue(t)
	}
}

// dying reports whether the caller is a task that was killed.
func (s *Simulator) dying() bool { return s.current != nil && s.current.killed }

// lastPolls is how often a task may poll after it was killed. A task that never sleeps ends there.
const lastPolls = 1000

// look is a poll: it settles, and reports whether the caller is alive and may see the result.
func (s *Simulator) look() (alive bool) {
	if !s.dying() {
		s.settle()
	}
	if !s.dying() {
		return true
	}
	if s.current.polls++; s.current.polls > lastPolls {
		runtime.Goexit()
	}
	return false
}

// pause gives the turn back with mu, and returns with both when the turn comes again.
func (s *Simulator) pause(t *task) {
	if !t.yield(struct{}{}) {
		if !s.unwinding {
			// The turns are out of order, and no error could be trusted to arrive.
			panic("sim: a goroutine that is no task waited for a device while Run ran")
		}
		runtime.Goexit()
	}
}

// wait makes the current task wait for a channel, if there is one, or for a time.
func (s *Simulator) wait(b *eventChannel, until time.Duration) {
	if s.unwinding {
		runtime.Goexit()
	}
	t := s.current
	t.channel, t.deadline = b, until
	s.pause(t)
}

// rest makes a task wait that has given the turn back for that.
func (s *Simulator) rest(t *task) {
	t.asleep, t.sleeping = true, t.channel != nil
	if t.channel != nil {
		t.channel.remember(t)
	}
	if t.deadline < forever {
		s.deadlines.add(t)
	}
}

// wake makes a waiting task runnable.
func (s *Simulator) wake(t *task) {
	s.deadlines.remove(t)
	if t.channel != nil {
		t.channel.forget(t)
	}
	t.asleep = false
	t.local = max(t.local, s.now)
	s.enqueue(t)
}

// A Waiter is a task that waits for what never comes.
type Waiter struct {
	// Task is its number in the order of Go, Name the name passed to Go.
	Task int
	Name string
	// Local is the time on its clock.
	Local time.Duration
	// Device is the address of the device on whose channel it sleeps.
	Device string
	// Starved are the numbers of the device's queue pairs that send to a peer without a posted receive.
	Starved []uint32
}

// A DeadlockError reports that tasks wait and no event is left.
type DeadlockError struct {
	// Now is the time at which no event was left.
	Now time.Duration
	// Waiters are the tasks that have not ended.
	Waiters []Waiter
}

func (e *DeadlockError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "sim: deadlock at %v: %d tasks wait and nothing is left to happen", e.Now, len(e.Waiters))
	const named = 8
	for i, w := range e.Waiters {
		if i == named {
			fmt.Fprintf(&text, "; and %d more", len(e.Waiters)-named)
			break
		}
		fmt.Fprintf(&text, "; task %d (%s) sleeps on %s since %v", w.Task, w.Name, w.Device, w.Local)
		if len(w.Starved) > 0 {
			fmt.Fprintf(&text, ", where queue pairs %v send to a peer that posts no receive", w.Starved)
		}
	}
	return text.String()
}

func (s *Simulator) deadlock() error {
	e := &DeadlockError{Now: s.now}
	for _, t := range s.tasks {
		if t.next == nil {
			continue
		}
		w := Waiter{Task: t.number, Name: t.name, Local: t.local}
		if t.channel != nil {
			w.Device = t.channel.device.address
			for _, q := range t.channel.device.pairs {
				if q.parked {
					w.Starved = append(w.Starved, q.number)
				}
			}
		}
		e.Waiters = append(e.Waiters, w)
	}
	return e
}
