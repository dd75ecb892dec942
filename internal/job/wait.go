package job

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/spin"
)

const (
	// A round of spinning is spinRound looks and one Poll; a look costs one or
	// two nanoseconds. From the second round on it is fewer looks that take as
	// long, because the processor relaxes between them.
	spinRound    = 500
	relaxedRound = 50
	lookTime     = 2 * time.Nanosecond
	// pollTime is about what a Poll of a network card takes. Where there are ranks
	// that are mapped too, a round is mixedLooks and one Poll.
	pollTime = 500 * time.Nanosecond
	// anotherLook is about what each further look of one takes that dwells (verbs.Server).
	anotherLook = 330 * time.Nanosecond
	mixedLooks  = 30
	// mostYields is how many there are between spinning and sleeping, for ranks that share
	// a core.
	mostYields = 20
	// firstSleep bounds the sleeps before a wait asks its context to end them,
	// which allocates: most waits are over by then.
	firstSleep = time.Millisecond
	// shortSleep bounds a sleep that nothing may end.
	shortSleep = 50 * time.Microsecond
)

// A Waiter is one wait. It is a value on its user's stack:
//
//	wait := w.NewWaiter()
//	defer wait.Finish()
//	for !arrived() {
//		if err := wait.Pause(ctx); err != nil {
//			return err
//		}
//	}
type Waiter struct {
	world    *World
	looks    int
	rounds   int
	yields   int
	relaxed  int
	prepared bool
	// slept tells that a sleep was about as long as firstSleep. asleep sums sleeps up;
	// long tells, once each time, that they were about as long as settings.longestSleep. A device
	// that looks after its peers, or serves them, ends each of them sooner.
	slept  bool
	asleep time.Duration
	long   bool
	// quiet tells that the last sleep was about as long as firstSleep.
	quiet bool
	// vigilant tells that the vigil has noted this wait, told that it has ended it once.
	vigilant, told bool
	// counted tells that this wait is one of endpoint.waiting, as it is behind its first Poll.
	counted bool
	ticket  uint32
	stop    func() bool
	// closing: the wait is a step of closing the World, and goes on while the memory of the World is about to be freed.
	closing bool
	// shortage is the last that this wait has heard of.
	shortage *linkError
	// noted is what seek has told others, 0 if nothing.
	noted uint64
	// whom is 1 + the rank that it is for, 0 if any other may end it.
	whom int
	// call is what others see of the wait, nil as long as they see nothing; unnamed: it is of no call of the program.
	call    *waitingCall
	unnamed bool
	// since is when it slept first. stalled tells that it is to be reported, reported that it has been.
	since             time.Duration
	stalled, reported bool
}

// NewWaiter starts a wait.
func (w *World) NewWaiter() Waiter {
	wait := Waiter{world: w, rounds: w.spinRounds, yields: w.yields, shortage: w.shortage.Load()}
	if wait.rounds > 0 {
		wait.looks = w.spinLooks
	}
	return wait
}

// Pause is called after each look that found nothing, and returns when it is time
// for the next: at once at first, later after a yield, or after a sleep that any
// ring of the device's channel ends. Before it sleeps it announces that and
// returns once more, so that what comes between a look and the sleep ends the
// sleep. It returns an error when
//   - the memory of the World is about to be freed, an ErrClosed;
//   - ctx has ended;
//   - this rank has come to lack what a connection takes.
//
// It looks at the last two only when it is about to sleep.
func (p *Waiter) Pause(ctx context.Context) error {
	if p.looks > 0 {
		p.looks--
		return nil
	}
	return p.pause(ctx)
}

func (p *Waiter) pause(ctx context.Context) error {
	if p.relaxed > 0 {
		p.relaxed--
		spin.Relax()
		return nil
	}
	found, polled := p.world.pollIfFree()
	some := found > 0
	if !p.counted && p.world.cards[networkCard] != nil {
		p.counted = true
		p.world.waiting.Add(1)
	}
	if p.over() {
		return errWorldClosed
	}
	if some {
		// Where something has come more is likely to.
		p.rest()
		p.rounds = p.world.spinRounds
		return nil
	}
	switch {
	case p.rounds > 0 && !p.world.still():
		p.rounds--
		p.relaxed = p.world.relaxedLooks
	case p.yields > 0:
		p.yields--
		begun := p.world.Now()
		if p.yields == 0 {
			// Once for the goroutines of this rank.
			runtime.Gosched()
		} else {
			p.world.yield()
		}
		p.world.attended(p.world.Now() - begun)
	case !p.prepared:
		if ctx.Err() != nil {
			p.cutShort()
			return errtext.Ended(ctx)
		}
		if s := p.world.shortage.Load(); s != p.shortage {
			p.shortage = s
			return s.err
		}
		if p.slept && p.stop == nil && ctx.Done() != nil {
			p.stop = context.AfterFunc(ctx, p.world.channel.Ring)
		}
		if p.world.vigil != nil {
			if err := p.watch(); err != nil {
				return err
			}
		}
		if p.stalled || p.since != 0 && p.world.Now()-p.since >= notedAfter {
			p.note(ctx)
		}
		p.ticket = p.world.channel.Prepare()
		p.prepared = true
		p.world.leaveRings()
		// After Prepare: endWaits stores departing before it rings, so a wait that has not seen it does not sleep through the ring.
		if p.over() {
			return errWorldClosed
		}
	default:
		if p.stalled {
			p.report(p.awaited())
		}
		limit := firstSleep
		if p.slept {
			limit = p.world.settings.longestSleep
		}
		if !polled {
			// Another goroutine is polling. It may have passed an arrival from before Prepare, for which no Ring ends
			// this sleep.
			limit = min(limit, shortSleep)
		}
		begun := p.world.Now()
		p.handOver()
		p.world.channel.Sleep(p.ticket, limit)
		took := p.world.Now() - begun
		p.sleeps(begun, took)
		p.world.sleeps.Add(1)
		p.world.slept.Add(uint64(took))
		if p.world.network() == p.world.home.device {
			// What comes has woken this rank as soon as it would the driver.
			p.world.attended(took)
		}
		p.quiet = took > firstSleep/2
		p.slept = p.slept || p.quiet
		p.asleep += took
		if p.long = p.asleep > p.world.settings.longestSleep/2; p.long {
			p.asleep = 0
		}
		p.rest()
	}
	return nil
}

// Closing has the wait go on while the memory of the World is about to be freed: it is a step of that.
func (p *Waiter) Closing() { p.closing = true }

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
	if p.prepared && rank != p.world.rank {
		_, left = p.world.barrier.left(rank)
	}
	return left
}

// Unserved is Lost for what rank does by itself, without a call: it does so after it has closed its World, too, until all have.
func (p *Waiter) Unserved(op string, rank int) error {
	if err := p.world.peerError(op, rank); err != nil {
		return err
	}
	if p.prepared {
		return p.world.endedBy(op, rank)
	}
	return nil
}

// Brief has the next sleep be one of a millisecond at most, for who looks at the time, too.
func (p *Waiter) Brief() { p.slept = false }

// AboutToSleep reports whether Pause will sleep, if nothing comes.
func (p *Waiter) AboutToSleep() bool { return p.prepared }

// handOver has the driver look after the network, when this rank is about to sleep
// elsewhere.
func (p *Waiter) handOver() {
	w := p.world
	if w.cards[networkCard] == nil || w.home == w.cards[networkCard] {
		return
	}
	p.uncount()
	w.wakeDriver()
}

// over reports whether the memory of the World is about to be freed, for a wait that ends then.
func (p *Waiter) over() bool { return p.world.departing.Load() && !p.closing }

func (p *Waiter) rest() {
	if p.prepared {
		p.prepared = false
		p.world.channel.Finish()
	}
}

// restart begins the wait again, for what comes next.
func (p *Waiter) restart() {
	p.rest()
	p.unwatch()
	if p.noted != 0 {
		p.forget()
	}
	p.since, p.stalled, p.reported = 0, false, false
	p.rounds, p.yields, p.looks, p.relaxed, p.asleep, p.long = p.world.spinRounds, p.world.yields, 0, 0, 0, false
	if p.rounds > 0 {
		p.looks = p.world.spinLooks
	}
}

// uncount has the driver look after the network again.
func (p *Waiter) uncount() {
	if p.counted {
		p.counted = false
		p.world.waited.Store(int64(p.world.Now()))
		p.world.waiting.Add(-1)
	}
}

// unwatch notes that it does not, or has heard something.
func (p *Waiter) unwatch() {
	if p.vigilant {
		p.vigilant = false
		p.world.vigil.since[p.world.vigilRank] = 0
	}
}

// watch notes that this rank waits, and ends the wait if all ranks do for too long.
func (p *Waiter) watch() error {
	v, now := p.world.vigil, p.world.Now()
	p.vigilant = v.begin(p.world.vigilRank, now) || p.vigilant
	if p.told || !v.over(now) {
		return nil
	}
	p.told = true
	return fmt.Errorf("%w, for %v and longer: %s", ErrDeadlock, v.patience, v.report(p.world.vigilRank, p.world.closed.Load()))
}

// Finish ends the wait.
func (p *Waiter) Finish() {
	p.rest()
	p.uncount()
	p.unwatch()
	p.unnote()
	if p.noted != 0 {
		p.forget()
	}
	if p.stop != nil {
		p.stop()
	}
}
