package job

import (
	"context"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/progress"
)

// A Waiter is one wait: a progress.Waiter that the guard of a World lets go on. It is a value on its user's stack:
//
//	wait := w.NewWaiter()
//	defer wait.Finish()
//	for !arrived() {
//		if err := wait.Pause(ctx); err != nil {
//			return err
//		}
//	}
//
// Besides the errors of its context, Pause returns an ErrClosed when the memory of the World is about to be freed, and a
// verbs.ErrShortage when this rank has come to lack what a connection takes.
type Waiter struct {
	progress.Waiter
	world *World
}

// NewWaiter starts a wait.
func (w *World) NewWaiter() Waiter { return Waiter{w.engine.NewWaiter((*guard)(w)), w} }

// NewClosingWaiter starts a wait that is a step of closing the World: it goes on while the memory of the World is about to be
// freed.
func (w *World) NewClosingWaiter() Waiter {
	return Waiter{w.engine.NewWaiter((*closingGuard)(w)), w}
}

// guard is a World as the progress.Guard of its waits. It ends them when the memory of the World is about to be freed, finds
// deadlocks in virtual time, and shows and reports the calls that wait long.
type guard World

// A guardState is what the guard keeps of a wait that sleeps.
type guardState struct {
	// vigilant is set if the vigil has noted this wait, told if it has ended the wait once.
	vigilant, told bool
	// call is what others see of the wait, nil as long as they see nothing; unnamed: it is of no call of the program.
	call    *waitingCall
	unnamed bool
	// reported is set if the wait was reported as a long one.
	reported bool
	// noted is what seek has told others, 0 if nothing.
	noted uint64
}

func keptOf(s *progress.Sleeper) *guardState {
	k, ok := s.Keep.(*guardState)
	if !ok {
		k = new(guardState)
		s.Keep = k
	}
	return k
}

// Ended returns ErrClosed when the memory is about to be freed: see endWaits.
func (g *guard) Ended() error {
	if g.departing.Load() {
		return errWorldClosed
	}
	return nil
}

// MaySleep notes that this rank waits, and names the call. Just before a sleep it reports a wait that has reached the limit of
// WithStall.
func (g *guard) MaySleep(ctx context.Context, s *progress.Sleeper) error {
	w := (*World)(g)
	stalled := w.stalled(s)
	if s.Announced {
		if stalled {
			w.reportStall(s, awaitedBy(s))
		}
		return nil
	}
	if w.vigil != nil {
		if err := w.watchWait(s); err != nil {
			return err
		}
	}
	if stalled || s.Since != 0 && w.Now()-s.Since >= notedAfter {
		w.nameWait(ctx, s)
	}
	return nil
}

// Leave removes what other ranks see of the wait. If its context has cut it short, the next wait can resume what it found.
func (g *guard) Leave(s *progress.Sleeper, restarted bool) {
	w, k := (*World)(g), keptOf(s)
	if s.Cut {
		w.cutShort(s)
	}
	if k.vigilant {
		k.vigilant = false
		w.vigil.since[w.vigilRank] = 0
	}
	if k.noted != 0 {
		w.forget(s)
	}
	k.reported = false
	if restarted {
		return
	}
	if k.call != nil {
		w.waitingCalls.remove(k.call)
	}
	*k = guardState{}
}

// closingGuard is the guard of waits that are a step of closing the World.
type closingGuard World

func (g *closingGuard) Ended() error { return nil }

func (g *closingGuard) MaySleep(ctx context.Context, s *progress.Sleeper) error {
	return (*guard)(g).MaySleep(ctx, s)
}

func (g *closingGuard) Leave(s *progress.Sleeper, restarted bool) { (*guard)(g).Leave(s, restarted) }

// watchWait notes that this rank waits, and ends the wait if all ranks do for too long.
func (w *World) watchWait(s *progress.Sleeper) error {
	v, k, now := w.vigil, keptOf(s), w.Now()
	k.vigilant = v.begin(w.vigilRank, now) || k.vigilant
	if k.told || !v.over(now) {
		return nil
	}
	k.told = true
	return fmt.Errorf("%w, for %v and longer: %s", ErrDeadlock, v.patience, v.report(w.vigilRank, w.closed.Load()))
}

// Lost says that what is waited for cannot come from rank any more: a *PeerError if
// rank has failed, or if it has closed its World, at which it looks only when the
// wait is about to sleep. What rank did before is done: the caller looks once more
// before it believes it.
func (p *Waiter) Lost(op string, rank int) error {
	err := p.Unserved(op, rank)
	if err == nil && p.Left(rank) {
		err = p.world.LeftBy(op, rank)
	}
	return err
}

// Left reports whether another rank has closed its World. It looks only when the wait is about to sleep.
func (p *Waiter) Left(rank int) (left bool) {
	if p.AboutToSleep() && rank != p.world.rank {
		_, left = p.world.barrier.left(rank)
	}
	return left
}

// Unserved is Lost for what rank does by itself, without a call: it does so after it has closed its World, too, until all have.
func (p *Waiter) Unserved(op string, rank int) error {
	if err := p.world.peerError(op, rank); err != nil {
		return err
	}
	if p.AboutToSleep() {
		return p.world.endedBy(op, rank)
	}
	return nil
}

// A stallState is what the waits of one call hand on, so that together they are reported once: when the first slept first, and
// whether one was reported.
type stallState struct {
	since    time.Duration
	reported bool
}

// resumeStall has the wait count from when one before it slept first.
func (p *Waiter) resumeStall(from stallState) {
	s := p.Sleeper()
	s.Since, keptOf(s).reported = from.since, from.reported
}

// stallState is what a later wait resumes.
func (p *Waiter) stallState() stallState {
	s := p.Sleeper()
	return stallState{s.Since, keptOf(s).reported}
}
