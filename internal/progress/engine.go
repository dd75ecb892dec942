package progress

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

// A Source is something that makes progress when it is polled: a device, a list of things to do.
type Source interface {
	// Poll does what can be done now, and returns how much was found. before is what the Sources before it have found in
	// the same poll: work that comes after everything else is done when that is 0. Poll is called with the mutex of the
	// Engine and must not block. It counts everything that a wait may wait for, or calls Wake.
	//
	// A panic ends the poll, which then polls no further Source and wakes nobody. It reaches the caller of the poll. If a
	// sleeper relies on this caller, all Sources are polled once more on the way. If one panics again, that panic replaces
	// the first.
	Poll(before int) (found int)
}

// A SleepPreparer is a Source that prepares for the sleep of a wait.
type SleepPreparer interface {
	// BeforeSleep is called after a wait has announced a sleep, and without the mutex of the Engine.
	BeforeSleep()
}

// A SourceFunc is a function as a Source.
type SourceFunc func(before int) (found int)

// Poll calls f.
func (f SourceFunc) Poll(before int) (found int) { return f(before) }

// Limits are what a wait does before it sleeps, and how long it sleeps. When more ranks than cores share the machine, only
// Limits change.
type Limits struct {
	// SpinRounds is the number of rounds of spinning. A round begins with a poll. SpinIterations is the number of
	// iterations without a poll before the first round. RelaxedIterations is the number of those after the poll of each
	// round, in which the processor relaxes.
	SpinRounds, SpinIterations, RelaxedIterations int
	// Yields is the number of yields between spinning and sleeping. The last of them calls runtime.Gosched, for the
	// goroutines of this rank. The others call Yield, which gives the processor to those whom this rank waits for. Yield
	// may be nil if Yields is at most 1.
	Yields int
	Yield  func()
	// LongestSleep bounds the delay if the rank that should wake a sleeper has ended. If it is negative, only the first
	// sleep of a wait is bounded: not even a sleep that relies on the poll of another goroutine is. Waiter.Long is then
	// true after every sleep.
	LongestSleep time.Duration
	// Oversubscribed is set if more ranks than cores share the machine: others may have the processor for long between
	// two polls of a wait.
	Oversubscribed bool
}

// A Config has the parameters of an Engine.
type Config struct {
	// Home is the event channel on which waits sleep. Network is that of the network card, nil if there is none. What
	// comes over the network does not wake a sleeper of Home if they differ.
	Home, Network verbs.CompletionChannel
	// Now is the clock.
	Now func() time.Duration
	// Charger is set if time is virtual. It passes only while somebody waits or computes, and both make progress, so there
	// is no background goroutine.
	Charger verbs.Charger
	// Pending reports whether output of this side waits for room, and continues only in a poll; nil means never.
	Pending func() bool
	// Still reports whether nothing can change while a wait spins; nil means never. It is called in each round.
	Still func() bool
	// NoStandBack keeps the background goroutine from standing back from a rank that only calls often.
	NoStandBack bool
	// Limits are the first: see SetLimits.
	Limits Limits
}

// An Engine makes the progress of one rank. Its methods may be called from any goroutine, except where they say otherwise.
type Engine struct {
	config       Config // without Limits
	limits       atomic.Pointer[Limits]
	interruption atomic.Pointer[interruption]

	// mu is held by the goroutine that polls. pollWanted is set by a sleeper whose last poll found mu held.
	mu         sync.Mutex
	pollWanted atomic.Bool
	// sources, polls (their number) and retries are guarded by mu. preparers is replaced with mu, and loaded
	// without it.
	sources   []Source
	polls     uint64
	retries   retries
	preparers atomic.Pointer[[]SleepPreparer]

	deferred   deferred
	sleepers   sleepers
	background background
	// sleeps counts the sleeps of waits, and sleepTime their nanoseconds.
	sleeps, sleepTime atomic.Uint64
}

// New returns an Engine without Sources.
func New(config Config) *Engine {
	e := new(Engine)
	e.SetLimits(config.Limits)
	config.Limits = Limits{}
	e.config = config
	e.preparers.Store(new([]SleepPreparer))
	e.background.endNap = make(chan struct{}, 1)
	return e
}

// Register adds a Source. A poll polls Sources in the order in which they were registered.
func (e *Engine) Register(s Source) {
	e.Lock()
	defer e.Unlock()
	e.sources = append(e.sources, s)
	if p, ok := s.(SleepPreparer); ok {
		// A sleeper may be reading the old slice.
		preparers := append(slices.Clip(*e.preparers.Load()), p)
		e.preparers.Store(&preparers)
	}
}

// Limits returns the limits of waits that begin now.
func (e *Engine) Limits() Limits { return *e.limits.Load() }

// SetLimits sets the limits of waits that begin from now on. The background goroutine uses Oversubscribed and LongestSleep at
// once.
func (e *Engine) SetLimits(l Limits) { e.limits.Store(&l) }

// Poll does the work that can be done now, and returns how much was found. It returns 0 while another goroutine polls. With the
// mutex it does nothing and returns 0.
func (e *Engine) Poll() (found int) {
	found, _ = e.pollCounted(false)
	return found
}

// pollCounted is Poll as one that the background goroutine may stand back for. If another goroutine polls, the last poll
// before a sleep is made up for: see the package. polled is false then.
func (e *Engine) pollCounted(last bool) (found int, polled bool) {
	e.background.polls.Add(1)
	found, polled = e.tryPoll(last)
	if found > 0 {
		e.Attended(busyPoll)
	}
	// A Source that calls Poll has the mutex.
	if polled && e.deferred.some.Load() {
		e.deferred.run()
	}
	return found, polled
}

// PollUncounted is Poll by a caller that does not go on polling: the background goroutine does not stand back for it. It runs
// no deferred functions.
func (e *Engine) PollUncounted() (found int) {
	found, _ = e.tryPoll(false)
	return found
}

func (e *Engine) tryPoll(last bool) (found int, polled bool) {
	if !e.mu.TryLock() {
		if !last {
			return 0, false
		}
		e.pollWanted.Store(true)
		// TryLock begins with a plain load, which arm64 may move before the store, but not before this load. If another
		// goroutine has cleared pollWanted, its poll began after the store.
		if !e.pollWanted.Load() || !e.mu.TryLock() {
			return 0, false
		}
	}
	// A simulated rank may be killed in the middle of a poll.
	defer e.Unlock()
	return e.poll(), true
}

// poll polls all Sources. It is called with the mutex.
func (e *Engine) poll() (found int) {
	// Before it polls the first Source.
	if e.pollWanted.Load() {
		// Swap, not Store: it reads the flag of the last sleeper, whose card is armed by then.
		e.pollWanted.Swap(false)
	}
	e.polls++
	for _, s := range e.sources {
		found += s.Poll(found)
	}
	e.background.demand.update(e)
	e.retries.try()
	if found > 0 {
		// What came may be what another goroutine sleeps for.
		e.config.Home.Wake()
	}
	return found
}

// Polls returns the number of polls so far. It is called with the mutex.
func (e *Engine) Polls() uint64 { return e.polls }

// Drain polls until nothing is found, at most n times. It waits for another goroutine that polls.
func (e *Engine) Drain(n int) {
	e.Lock()
	defer e.Unlock()
	for i := 0; i < n && e.poll() > 0; i++ {
	}
}

// Lock takes the mutex: no Source is polled and nothing is retried until Unlock. The caller must hold no lock that a Source
// takes.
func (e *Engine) Lock() { e.mu.Lock() }

// TryLock is Lock that fails if the mutex is taken. It is for a caller that may have the mutex itself.
func (e *Engine) TryLock() bool { return e.mu.TryLock() }

// Unlock gives the mutex back. It polls if a sleeper relies on that.
func (e *Engine) Unlock() {
	e.mu.Unlock()
	for e.pollWanted.Load() && e.mu.TryLock() {
		e.pollForSleepers()
	}
}

func (e *Engine) pollForSleepers() {
	defer e.mu.Unlock()
	e.poll()
}

// Exclude calls f with the mutex.
func (e *Engine) Exclude(f func()) {
	e.Lock()
	defer e.Unlock()
	f()
}

// Wake wakes the waits that sleep. It is called after the change that they may wait for.
func (e *Engine) Wake() { e.config.Home.Wake() }

// WakeAll is Wake, and ends the sleep of the background goroutine too.
func (e *Engine) WakeAll() {
	e.Wake()
	if e.config.Network != nil && e.config.Network != e.config.Home {
		e.config.Network.Wake()
	}
}

// beforeSleep calls the SleepPreparers.
func (e *Engine) beforeSleep() {
	for _, p := range *e.preparers.Load() {
		p.BeforeSleep()
	}
}

// Retry has try called in every poll until it returns true, or panics. It suits work that waits for something that nothing
// announces. try may call Retry. Retry is called with the mutex, as try is.
func (e *Engine) Retry(try func() (done bool)) {
	e.retries.waiting = append(e.retries.waiting, try)
	e.retries.some.Store(true)
}

// retrying reports whether something is to be retried.
func (e *Engine) retrying() bool { return e.retries.some.Load() }

// TryAgain polls if something is to be retried. It is for a caller that has changed what that may wait for.
func (e *Engine) TryAgain() {
	if e.retrying() {
		e.Poll()
	}
}

// retries are guarded by the mutex of the Engine, except for some, which is set if any wait.
type retries struct {
	// spare is empty memory for those that go on waiting.
	waiting, spare []func() (done bool)
	some           atomic.Bool
}

// try tries once more what waits.
func (r *retries) try() {
	if len(r.waiting) == 0 {
		return
	}
	waiting, tried := r.waiting, 0
	r.waiting = r.spare
	// If one panics, those after it go on waiting.
	defer func() {
		r.waiting = append(r.waiting, waiting[tried:]...)
		clear(waiting)
		r.spare = waiting[:0]
		if len(r.waiting) == 0 {
			r.some.Store(false)
		}
	}()
	for tried < len(waiting) {
		try := waiting[tried]
		tried++
		if !try() {
			r.waiting = append(r.waiting, try)
		}
	}
}

// Defer has f called once, without the mutex, by the next goroutine that polls in Poll or Pause. It wakes nobody: outside of a
// poll the caller calls Wake afterwards, or f may wait for the longest sleep.
func (e *Engine) Defer(f func()) { e.deferred.add(f) }

type deferred struct {
	some atomic.Bool
	mu   sync.Mutex
	left []func()
}

func (d *deferred) add(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = append(d.left, f)
	d.some.Store(true)
}

// run calls what is left. If one panics, those after it are left.
func (d *deferred) run() {
	d.mu.Lock()
	left := d.left
	d.left = nil
	d.some.Store(false)
	d.mu.Unlock()
	called := 0
	defer func() {
		if called < len(left) {
			d.putBack(left[called:])
		}
	}()
	for called < len(left) {
		f := left[called]
		called++
		f()
	}
}

func (d *deferred) putBack(left []func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = append(left, d.left...)
	d.some.Store(true)
}

// An interruption is an error that waits return.
type interruption struct{ err error }

// Interrupt has every wait that has begun before return err once, when it is about to sleep. It ends their sleeps. Only the last
// of several errors is returned.
func (e *Engine) Interrupt(err error) {
	e.interruption.Store(&interruption{err})
	e.Wake()
}

// Sleeps returns how often waits slept, and how long in all.
func (e *Engine) Sleeps() (n uint64, took time.Duration) {
	return e.sleeps.Load(), time.Duration(e.sleepTime.Load())
}

// Compute keeps this rank's processor busy for d, by the clock of the Engine. In virtual time it makes progress meanwhile.
func (e *Engine) Compute(d time.Duration) {
	charger, now := e.config.Charger, e.config.Now
	if charger == nil {
		for begun := now(); now()-begun < d; {
		}
		return
	}
	for d = charger.Takes(d); d > 0; {
		ticket, begun := e.config.Home.Prepare(), now()
		e.beforeSleep()
		if e.Poll() == 0 {
			charger.Work(ticket, max(d-(now()-begun), 0))
			d -= now() - begun
		}
		e.config.Home.Finish()
	}
}

// Close ends the background goroutine. None starts after it.
func (e *Engine) Close() { e.background.close(e) }
