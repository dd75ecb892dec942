package progress

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/spin"
)

// FirstSleep bounds the sleeps before a wait asks its context to end them, which allocates: most waits are over by then.
const FirstSleep = time.Millisecond

// longestReliance bounds a sleep that relies on the poll of another goroutine. Nothing bounds when that polls, or ensures that
// its poll ends without a panic.
const longestReliance = time.Millisecond

// A Waiter is one wait of one goroutine. It is a value on its user's stack:
//
//	wait := engine.NewWaiter(guard)
//	defer wait.Finish()
//	for !arrived() {
//		if err := wait.Pause(ctx); err != nil {
//			return err
//		}
//	}
type Waiter struct {
	engine *Engine
	limits *Limits
	guard  Guard
	// sleeper is nil before the wait is about to sleep.
	sleeper      *Sleeper
	stop         func() bool
	interruption *interruption
	// spins and relaxed are the numbers of iterations that are left before the first round, and in this one. rounds and
	// yields are the numbers of those that are left.
	spins, relaxed, rounds, yields int
	// rank is 1 + the rank that the wait is for, 0 if any may end it.
	rank   int
	ticket uint32
	// announced is set between Prepare and Finish of the channel, counted while the wait counts in background.waiting.
	announced, counted bool
	// relies is set if the last poll was left to another goroutine.
	relies bool
	// slept, quiet and long: see the methods.
	slept, quiet, long bool
}

// A Guard decides whether waits go on. Its methods are called by the goroutine that waits, without the mutex of the Engine.
type Guard interface {
	// Ended returns the error of a wait that must end at once, for example because memory is about to be freed. It is
	// called after every poll, and after the announcement of a sleep. The goroutine that makes it return an error wakes the
	// sleepers afterwards.
	Ended() error
	// MaySleep is called when a wait is about to announce that it sleeps, and once more just before it sleeps. An error ends
	// the wait.
	MaySleep(ctx context.Context, s *Sleeper) error
	// Leave is called when a wait that has a Sleeper ends, or is restarted.
	Leave(s *Sleeper, restarted bool)
}

// A Sleeper is a wait that sleeps or is about to, as its Guard sees it. Sleepers of waits that have ended are reused: a wait that
// sleeps allocates none after the first few.
type Sleeper struct {
	// Rank is the rank that the wait is for, -1 if several may end it.
	Rank int
	// Since is when the wait slept first, 0 if it has not slept, and Until the end of its last sleep.
	Since, Until time.Duration
	// Asleep sums up the sleeps, until that is long: see Waiter.Long.
	Asleep time.Duration
	// Announced is set in the call of MaySleep just before a sleep.
	Announced bool
	// Cut is set if the wait has returned the error of its context since it slept last.
	Cut bool
	// Keep is state of the Guard. It is left as it is when another wait uses the Sleeper.
	Keep any
}

// sleepers are those that no wait uses.
type sleepers struct {
	mu   sync.Mutex
	free []*Sleeper
}

func (s *sleepers) take() *Sleeper {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.free)
	if n == 0 {
		return new(Sleeper)
	}
	one := s.free[n-1]
	s.free = s.free[:n-1]
	return one
}

func (s *sleepers) give(one *Sleeper) {
	*one = Sleeper{Keep: one.Keep}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, one)
}

// NewWaiter begins a wait. guard may be nil.
func (e *Engine) NewWaiter(guard Guard) Waiter {
	w := Waiter{engine: e, guard: guard, limits: e.limits.Load(), interruption: e.interruption.Load()}
	w.reset()
	return w
}

// reset sets what is left to the limits.
func (w *Waiter) reset() {
	w.spins, w.relaxed, w.rounds, w.yields = 0, 0, w.limits.SpinRounds, w.limits.Yields
	if w.rounds > 0 {
		w.spins = w.limits.SpinIterations
	}
}

// Spin reports whether the caller may check its condition again without a Pause.
func (w *Waiter) Spin() bool {
	if w.spins > 0 {
		w.spins--
		return true
	}
	return false
}

// Pause returns when it is time for the caller to check its condition again, which was false. It returns at once at first, later
// after a yield, and then after a sleep that any wake of the channel ends. Before it sleeps it announces that and returns once
// more, so that what comes between a check and the sleep ends the sleep. It returns an error when
//   - the Guard says that the wait has ended;
//   - ctx has ended;
//   - Interrupt was called since the wait began, or returned its last such error;
//   - the Guard does not let it sleep.
//
// It looks at all but the first only when it is about to sleep. It does not allocate, except once in a wait whose context can
// end, after a sleep of about FirstSleep.
func (w *Waiter) Pause(ctx context.Context) error {
	if w.Spin() {
		return nil
	}
	return w.pause(ctx)
}

func (w *Waiter) pause(ctx context.Context) error {
	if w.relaxed > 0 {
		w.relaxed--
		spin.Relax()
		return nil
	}
	e := w.engine
	found, polled := e.pollCounted(w.announced)
	w.relies = !polled
	w.count()
	if err := w.ended(); err != nil {
		return err
	}
	switch {
	case found > 0:
		// Where something has come more is likely to.
		w.rest()
		w.rounds = w.limits.SpinRounds
	case w.rounds > 0 && !e.still():
		w.rounds--
		w.relaxed = w.limits.RelaxedIterations
	case w.yields > 0:
		w.yield()
	case !w.announced:
		return w.announce(ctx)
	default:
		return w.sleep(ctx)
	}
	return nil
}

func (e *Engine) still() bool { return e.config.Still != nil && e.config.Still() }

func (w *Waiter) ended() error {
	if w.guard == nil {
		return nil
	}
	return w.guard.Ended()
}

func (w *Waiter) yield() {
	w.yields--
	begun := w.engine.config.Now()
	if w.yields == 0 {
		// Once for the goroutines of this rank.
		runtime.Gosched()
	} else {
		w.limits.Yield()
	}
	w.engine.Attended(w.engine.config.Now() - begun)
}

// announce announces a sleep, unless the wait is to end.
func (w *Waiter) announce(ctx context.Context) error {
	e := w.engine
	if err := w.cut(ctx); err != nil {
		return err
	}
	if err := w.interrupted(); err != nil {
		return err
	}
	if w.slept && w.stop == nil && ctx.Done() != nil {
		w.stop = context.AfterFunc(ctx, e.Wake)
	}
	if err := w.maySleep(ctx); err != nil {
		return err
	}
	w.ticket = e.config.Home.Prepare()
	w.announced = true
	e.beforeSleep()
	// After Prepare: the goroutine that ends the wait does so before it wakes the sleepers. So a wait that does not see its
	// end does not sleep through the wake.
	if w.stop != nil {
		if err := w.cut(ctx); err != nil {
			return err
		}
	}
	if err := w.interrupted(); err != nil {
		return err
	}
	return w.ended()
}

// cut returns the error of a context that has ended.
func (w *Waiter) cut(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	if w.sleeper != nil {
		w.sleeper.Cut = true
	}
	return errtext.Ended(ctx)
}

// interrupted returns the error of the last Interrupt, once.
func (w *Waiter) interrupted() error {
	i := w.engine.interruption.Load()
	if i == w.interruption {
		return nil
	}
	w.interruption = i
	return i.err
}

// maySleep asks the Guard.
func (w *Waiter) maySleep(ctx context.Context) error {
	if w.guard == nil {
		return nil
	}
	s := w.Sleeper()
	s.Announced = w.announced
	return w.guard.MaySleep(ctx, s)
}

// Sleeper returns what the Guard sees of the wait.
func (w *Waiter) Sleeper() *Sleeper {
	if w.sleeper == nil {
		w.sleeper = w.engine.sleepers.take()
	}
	w.sleeper.Rank = w.rank - 1
	return w.sleeper
}

// sleep sleeps. Since the announcement the caller has checked its condition, and the wait has polled.
func (w *Waiter) sleep(ctx context.Context) error {
	if err := w.maySleep(ctx); err != nil {
		return err
	}
	e, limit := w.engine, FirstSleep
	if w.slept {
		limit = w.limits.LongestSleep
	}
	if w.relies {
		limit = min(limit, longestReliance)
	}
	begun := e.config.Now()
	if e.apart() {
		w.uncount()
		e.WakeBackground()
	}
	e.config.Home.Sleep(w.ticket, limit)
	took := e.config.Now() - begun
	e.sleeps.Add(1)
	e.sleepTime.Add(uint64(took))
	if !e.apart() {
		// What comes has woken this wait as soon as it would have woken the background goroutine.
		e.Attended(took)
	}
	w.woken(begun, took)
	w.rest()
	return nil
}

// woken accounts for a sleep.
func (w *Waiter) woken(begun, took time.Duration) {
	s := w.Sleeper()
	if s.Since == 0 {
		s.Since = max(begun, 1)
	}
	s.Until, s.Cut = begun+took, false
	w.quiet = took > FirstSleep/2
	w.slept = w.slept || w.quiet
	s.Asleep += took
	if w.long = s.Asleep > w.limits.LongestSleep/2; w.long {
		s.Asleep = 0
	}
}

// For says which rank the wait is for from now on. Without it any other may end it.
func (w *Waiter) For(rank int) { w.rank = rank + 1 }

// Rank returns the rank that the wait is for, -1 if several may end it.
func (w *Waiter) Rank() int { return w.rank - 1 }

// Brief bounds the next sleep by FirstSleep, for a caller that also watches the time.
func (w *Waiter) Brief() { w.slept = false }

// AboutToSleep reports whether the wait has announced a sleep. The next Pause sleeps if nothing comes.
func (w *Waiter) AboutToSleep() bool { return w.announced }

// Slept reports whether a sleep was about as long as FirstSleep since the last Brief.
func (w *Waiter) Slept() bool { return w.slept }

// Quiet reports whether the last sleep was about as long as FirstSleep.
func (w *Waiter) Quiet() bool { return w.quiet }

// Long reports, once each time, that sleeps have summed up to about LongestSleep. A device that serves or monitors its peers
// ends each of them sooner.
func (w *Waiter) Long() bool { return w.long }

// rest takes an announcement back.
func (w *Waiter) rest() {
	if w.announced {
		w.announced = false
		w.engine.config.Home.Finish()
	}
}

// Restart begins the wait anew, for the next condition.
func (w *Waiter) Restart() {
	w.rest()
	if s := w.sleeper; s != nil {
		if w.guard != nil {
			w.guard.Leave(s, true)
		}
		s.Since, s.Asleep, s.Cut = 0, 0, false
	}
	w.long = false
	w.reset()
}

// Finish ends the wait.
func (w *Waiter) Finish() {
	w.rest()
	w.uncount()
	if s := w.sleeper; s != nil {
		if w.guard != nil {
			w.guard.Leave(s, false)
		}
		w.sleeper = nil
		w.engine.sleepers.give(s)
	}
	if w.stop != nil {
		w.stop()
	}
}
