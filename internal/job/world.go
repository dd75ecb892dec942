package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/raceorder"
	"github.com/onesided/rma/verbs"
)

// A World is one rank's membership in a job, or in a team of ranks of it. Its methods may
// be called from any goroutine; collectives are called by all ranks in the same order, by
// one goroutine at a time.
//
// Programs use these methods, beside the functions of this package; package window and others like it are built on the
// rest:
//
//   - Rank and Size; InJob, the number in the job of a rank of a team
//   - Barrier, Split, Shrink, Close and CloseContext, which are collective; OnClose, for what must end before a World does
//   - Failure, FirstFailure and OnFailure, to go on without ranks that have failed
//   - Route, Stats and Transfers, to see what becomes of operations; Span, to see parts of the program in a trace
//   - Register, to tell network cards of a buffer that is used often
//   - Now and Compute, which work in virtual time, too
type World struct {
	// endpoint is what this rank has but once, whatever teams it is in.
	*endpoint
	// root is the World of the job; that is its own. context tells teams apart: no two that
	// have two ranks in common have the same. It is 0 in the World of a job. inJob are the
	// ranks of the job that a team's are, and region is over its block; nil in the World of a
	// job. partial tells that Split has not given the team yet: where others' blocks are is not known.
	root    *World
	context uint32
	inJob   []int
	region  *Region
	partial atomic.Bool

	rank, size int
	job        *job
	toll       toll
	// linked tells that some ranks reach others over links.
	linked bool
	// allReduced and broadcasted belong to the goroutine that is in a collective.
	allReduced, broadcasted way
	roster                  *roster
	shrinking               shrinking
	// small is what Shrink has made of this World.
	small *World

	neighbors []atomic.Pointer[verbs.Neighbor]
	hosts     hosts

	splitting splitting
	// abandoned are teams that are to be closed: see abandonSplit.
	abandoned []*World

	block   []byte
	barrier *Meeting
	last    *Meeting
	number  uint32
	ledger  *ledger
	ledgers []atomic.Pointer[ledger]
	cut     cutWait
	// acquaintances are those with each rank, and aside the goroutines that ask for one, or tell a stranger something.
	acquaintances []acquaintance
	aside         aside
	// reports are of the World of a job.
	reports *reports
	// judged is the verdict that has ended this rank's collectives.
	judged atomic.Pointer[verdict]
	// reported tells that all know of the first failure.
	reported atomic.Bool

	// collective is held by the goroutine that is in a collective.
	collective sync.Mutex
	// calls counts the collectives, barriers included, that are over.
	calls atomic.Uint32
	round round
	post  office
	// notes are the correspondences with other ranks, nil if there are none.
	notes []correspondence

	// links are those with other ranks, nil until there is one, cardLinks those that are mute,
	// muteEnds the other ends of ranks' mute links; parted tells of ranks that have left. muteEnds,
	// and services and meetings, which are by number, belong to progress.
	links     []atomic.Pointer[Link]
	cardLinks []atomic.Pointer[Link]
	muteEnds  map[int]verbs.QueuePair
	parted    []atomic.Bool
	services  map[uint32]Service
	meetings  map[uint32]*Meeting
	numbers   atomic.Uint32
	// left tells that this rank has left.
	left atomic.Bool

	// obituaries are this rank's; obituariesRead is how many progress has read.
	obituaries     []atomic.Uint64
	obituariesRead uint64
	// flags are the obituaries of the ranks that this one has met. They are of the World of a job.
	flags []atomic.Pointer[[]atomic.Uint64]
	lines lines

	attached attachments
	// session is what the World of one has, nil in others.
	session *Session

	// closing is held by the goroutine that closes it; ended tells that nothing is left to do.
	closing chan struct{}
	ended   bool
	leaving leaving
	closed  atomic.Bool
	// departing: waits end by ErrClosed, because the memory is about to be freed. See endWaits.
	departing atomic.Bool
	// missed: a call has ended because a rank has left. orderly: Close has begun, and there was no such call, nor had a
	// rank failed.
	missed, orderly atomic.Bool
	// finalize and end are what the way the job was made needs when it is over. A finalize that its context has cut short is
	// called again.
	finalize func(ctx context.Context) error
	end      func()
}

// newWorld makes the World of a rank, whose routes are not known yet.
func newWorld(rank, size int, b *base, roster *roster, s Settings) *World {
	e := newEndpoint(size, b, s)
	w := newMembership(e, rank, size, b.block, roster)
	w.root, w.reports = w, newReports()
	w.waitingCalls.shown = w.ledger
	w.obituaries, w.flags = obituariesOver(b.block, size), make([]atomic.Pointer[[]atomic.Uint64], size)
	e.worlds.Store(&[]*World{w})
	return w
}

// newMembership makes a World, without its root, over a block of flags.
func newMembership(e *endpoint, rank, size int, block []byte, roster *roster) *World {
	w := &World{
		endpoint: e, rank: rank, size: size, roster: roster, block: block,
		neighbors: make([]atomic.Pointer[verbs.Neighbor], size), acquaintances: make([]acquaintance, size),
		ledgers: make([]atomic.Pointer[ledger], size),
		links:   make([]atomic.Pointer[Link], size), cardLinks: make([]atomic.Pointer[Link], size), muteEnds: make(map[int]verbs.QueuePair),
		parted:   make([]atomic.Bool, size),
		services: make(map[uint32]Service),
		meetings: make(map[uint32]*Meeting),
		finalize: func(context.Context) error { return nil },
		closing:  make(chan struct{}, 1),
		post:     office{mu: &e.progress},
	}
	w.shrinking.told = make(map[int][]survivor)
	w.shrinking.proposals = make(map[int]string)
	w.shrinking.inquired = make(map[int]bool)
	w.ledger = ledgerOver(block[ledgerOffset:])
	w.ledgers[rank].Store(w.ledger)
	w.round.w = w
	w.post.open(w)
	if size <= mostNoted && !w.settings.tuning.NoCells {
		w.notes = make([]correspondence, size)
	}
	w.barrier = w.NewMeeting(barrierMeeting, block[:MeetingBytes], NoTally, func(rank int) ([]byte, error) {
		theirs, err := w.blockOf(rank)
		return theirs[:min(len(theirs), MeetingBytes)], err
	})
	w.last = w.NewMeeting(lastMeeting, block[MeetingBytes:ledgerOffset], NoTally, func(rank int) ([]byte, error) {
		theirs, err := w.blockOf(rank)
		return theirs[min(len(theirs), MeetingBytes):], err
	})
	w.last.last = true
	return w
}

// Rank returns this rank's number, from 0.
func (w *World) Rank() int { return w.rank }

// Size returns the number of ranks.
func (w *World) Size() int { return w.size }

// Device is the card that window memory comes from.
func (w *World) Device() verbs.Device { return w.home.device }

// Crowded tells that this rank shares its cores with more ranks of this job than these are, so
// that nobody should wait by spinning.
func (w *World) Crowded() bool { return w.crowded }

// RaceRelease tells the race detector that this rank is about to notify another rank, by a word in shared memory or by a
// message. It orders no memory: the atomic store of the word does. It does nothing if all ranks are goroutines of this
// process, whose order the detector sees.
func (w *World) RaceRelease() {
	if w.apart {
		raceorder.Release()
	}
}

// RaceAcquire tells the race detector that this rank has seen a notification of another rank. It pairs with that rank's
// RaceRelease: see package raceorder.
func (w *World) RaceAcquire() {
	if w.apart {
		raceorder.Acquire()
	}
}

// Barrier returns when every rank has called it.
func (w *World) Barrier(ctx context.Context) error {
	if err := w.enter(ctx, "Barrier"); err != nil {
		return err
	}
	defer w.collective.Unlock()
	defer w.EndSpan("Barrier", w.BeginSpan())
	r := &w.round
	if r.unfinished && r.signature.call != callBarrier {
		return r.refuse("Barrier")
	}
	r.op, r.unfinished = "Barrier", true
	r.signature = signature{call: callBarrier, number: w.calls.Load() + 1}
	r.history = r.signature.after(r.before)
	w.publish(&r.signature, nil)
	if err := w.barrier.meet(ctx, "Barrier", w.number+1, r.history); err != nil {
		return err
	}
	w.number++
	w.calls.Store(r.signature.number)
	r.unfinished, r.before = false, r.history
	return nil
}

// enter begins a collective, for one goroutine at a time.
func (w *World) enter(ctx context.Context, call string) error {
	err := w.take(ctx, call)
	if err == nil {
		if err = w.verdict(call, w.calls.Load()+1); err != nil {
			w.collective.Unlock()
		}
	}
	return err
}

// errUnmade: a program has made a World by itself.
var errUnmade = fmt.Errorf("%w: a World that no call of package world has made", ErrArgument)

// Made is made for package world.
func Made(w *World, call string) error { return made(w, call) }

// made returns the error of a call with a World that there is not, or that a program has made by itself.
func made(w *World, call string) error {
	switch {
	case w == nil:
		return nilArgument(call, "World")
	case w.endpoint == nil:
		return fmt.Errorf("world: %s: %w", call, errUnmade)
	}
	return nil
}

// Collective tells why this World has no collectives: ErrClosed, or ErrNoCollectives; nil if it has.
func (w *World) Collective() error {
	switch {
	case w.endpoint == nil:
		return errUnmade
	case w.closed.Load():
		return errWorldClosed
	case w.session != nil:
		return ErrNoCollectives
	}
	return nil
}

// take is enter by one who looks for a verdict anyway.
func (w *World) take(ctx context.Context, call string) error {
	if err := made(w, call); err != nil {
		return err
	}
	switch {
	case ctx == nil:
		return nilArgument(call, "context")
	case !w.collective.TryLock():
		return fmt.Errorf("%s: %w in another goroutine of rank %d", errtext.Call("world", call), ErrBusy, w.rank)
	}
	err := w.Collective()
	if err == nil {
		return nil
	}
	w.collective.Unlock()
	return errtext.Errorf("%s: %w", errtext.Call("world", call), err)
}

// Close leaves the job or the team, and returns when every other rank has called it or has failed.
func (w *World) Close() error { return w.CloseContext(context.Background()) }

// CloseContext is like Close, and waits for other ranks only until ctx ends.
func (w *World) CloseContext(ctx context.Context) error {
	if err := made(w, "Close"); err != nil {
		return err
	}
	if ctx == nil {
		return nilArgument("Close", "context")
	}
	begun := w.BeginSpan()
	defer w.reportCall(0, "Close", begun)
	return w.closeIn(ctx, sync.OnceFunc(func() { w.endStep("Close", begun) }))
}

// CloseOwn is CloseContext by the library: it is not in the trace, and the hook gets no event. Stall reports name it world.Close.
func (w *World) CloseOwn(ctx context.Context) error { return w.closeIn(ctx, func() {}) }

// closeIn is CloseContext without an event. It calls traced before the trace is written, also where ctx ends it first.
func (w *World) closeIn(ctx context.Context, traced func()) error {
	select {
	case w.closing <- struct{}{}:
	default:
		select {
		case w.closing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("world: Close: %w: it waits for another Close of rank %d", errtext.Ended(ctx), w.rank)
		}
	}
	defer func() { <-w.closing }()
	if w.ended {
		return nil
	}
	w.closed.Store(true)
	defer traced()
	done, err := w.leave(ctx, traced)
	if done {
		w.ended = true
		initialized.CompareAndSwap(w, nil)
	}
	return err
}

// leave does the work of closeIn, once more after ctx has ended, and reports whether nothing is left of it.
func (w *World) leave(ctx context.Context, traced func()) (done bool, err error) {
	l := &w.leaving
	if !l.begun {
		l.begun = true
		w.orderly.Store(w.FailureCount() == 0 && !w.missed.Load())
		if w.session != nil {
			w.session.leave()
		}
		if w.FailureCount() != 0 && !w.partial.Load() {
			w.report(w.calls.Load() + 1)
		}
	}
	if w.partial.Load() {
		return w.abandon(ctx)
	}
	if !l.left {
		if w.collective.TryLock() {
			// A team that ctx keeps from being closed is closed with the others.
			_, err := w.abandonSplit(ctx)
			w.collective.Unlock()
			l.err = errors.Join(l.err, err)
		}
		// A rank may read in memory that this one has left: that must come after
		// everything that it waits for over its link.
		if err := w.settle(ctx); err != nil {
			return false, err
		}
		w.barrier.leave()
		l.left = true
	}
	// Others of a team may wait for this rank in the job, and not come to close the team before they hear.
	err = w.closeTeams(ctx)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	l.err = errors.Join(l.err, err)
	if !l.met {
		// The last meeting, and behind one that has failed what outlast waits for.
		err := w.meetLast(ctx)
		if err != nil && !cutBy(ctx, err) {
			l.alone = true
			err = w.outlast(ctx)
		}
		switch {
		case w.departing.Load():
			// The body of this rank has failed meanwhile. What others do is not heard any more.
			return false, fmt.Errorf("world: Close: %w", errWorldClosed)
		case err != nil:
			return false, w.named(ctx, err)
		}
		l.met = true
	}
	if !l.departed {
		if err := w.settle(ctx); err != nil {
			return false, err
		}
		if w != w.root {
			traced()
			return true, errors.Join(l.err, w.departTeam(!l.alone))
		}
		// Others may need this rank's progress until they have finalized too.
		err := w.finalize(ctx)
		if cutBy(ctx, err) {
			return false, errtext.Errorf("world: Close: %w", err)
		}
		traced()
		l.err = errors.Join(l.err, err, w.departWithin(ctx))
		l.departed = true
	}
	if w.session != nil {
		if err := w.session.hangUp(ctx); err != nil {
			return false, err
		}
	}
	return true, l.err
}

// named is an error with which ctx has cut short a meeting of ranks that leave. The meeting names those that this rank has met: if there is
// none of them it is another that has not left.
func (w *World) named(ctx context.Context, err error) error {
	if !cutBy(ctx, err) {
		return err
	}
	bare := fmt.Errorf("world: Close: %w", errtext.Ended(ctx))
	if err.Error() != bare.Error() {
		return err
	}
	for rank := range w.size {
		if _, left := w.barrier.left(rank); left || rank == w.rank || w.Failure(rank) != nil {
			continue
		}
		if w.stranger(rank) {
			return fmt.Errorf("%w: %s", bare, unmet(rank))
		}
		return fmt.Errorf("%w: rank %d has not closed its World", bare, rank)
	}
	return err
}

// cutBy reports whether ctx has cut short what ended with an error, and no rank has.
func cutBy(ctx context.Context, err error) bool {
	return ctx.Err() != nil && Is(err, ctx.Err()) && Failed(err) == nil
}

// A leaving is what CloseContext has done.
type leaving struct {
	// begun, left, met and departed are the steps that are over: this rank takes no more calls, has told that it has left, all others
	// have left or failed, and what was this rank's is freed. alone tells that they have not met, err what has gone wrong.
	begun, left, met, departed, alone bool
	err                               error
}

// outlast waits until every rank has left or failed: what the last meeting is for,
// but a rank that has failed does not come to it, and those that wait for it there
// do not know whether the others have. Of those that share memory the last to leave wakes the others: each sets its flag
// before it looks at theirs, so that one waits for no flag in memory. A rank elsewhere tells each that it has left, which wakes
// them, and so does a failure. A process wakes those that map it by its end, too.
func (w *World) outlast(ctx context.Context) error {
	last := true
	wait := w.NewWaiter()
	defer wait.Finish()
	for rank := 0; rank < w.size; {
		// A rank that cannot be reached any more has gone.
		var err error
		if w.Mapped(rank) && w.approachable(rank) {
			_, err = w.barrier.block("Close", rank)
		}
		_, left := w.barrier.left(rank)
		if left || err != nil || rank == w.rank || w.Failure(rank) != nil {
			rank++
			continue
		}
		last = last && !w.Mapped(rank)
		wait.For(rank)
		switch err := wait.Pause(ctx); {
		case cutBy(ctx, err):
			return fmt.Errorf("world: Close: %w: rank %d has not closed its World", err, rank)
		case Is(err, ErrClosed):
			return err
		}
	}
	if last {
		w.wakeAll()
	}
	return nil
}

// wakeAll wakes all ranks that this one maps and has met.
func (w *World) wakeAll() {
	for rank := range w.size {
		if rank != w.rank && w.Mapped(rank) && !w.stranger(rank) {
			w.Ring(rank)
		}
	}
}

// settle waits until what this rank has sent has been received, and whoever it asks aside has answered.
func (w *World) settle(ctx context.Context) error {
	err := w.settleLinks(ctx)
	if err == nil {
		if err = w.aside.waitIn(ctx); err != nil {
			err = fmt.Errorf("world: Close: %w", err)
		}
	}
	return err
}

// settleLinks waits until what this rank has sent has been received, but by ranks
// that have failed: a device that is closed may take back what is on its way.
func (w *World) settleLinks(ctx context.Context) error {
	w.post.mu.Lock()
	var links []*Link
	for _, c := range w.cards {
		if c != nil {
			for _, l := range inOrder(c.links) {
				if l.world == w {
					links = append(links, l)
				}
			}
		}
	}
	w.post.mu.Unlock()
	for _, l := range links {
		if err := l.delivered(ctx); cutBy(ctx, err) {
			return fmt.Errorf("world: Close: %w", err)
		}
	}
	return nil
}

// endWaits ends all waits of this World but those that close it.
func (w *World) endWaits() {
	w.departing.Store(true)
	w.channel.Ring()
}

// stop ends what begin has begun.
func (w *World) stop() {
	w.stopDriver()
	if w.end != nil {
		w.end()
	}
}

// depart ends this rank's membership in the job, and in teams, without waiting for another rank.
func (w *World) depart() error { return w.departWithin(context.Background()) }

// departWithin is depart that waits only while ctx lasts for who reads the table of RMA_STATS.
func (w *World) departWithin(ctx context.Context) error {
	w.reports.end()
	err := errors.Join(w.closeUnshrunk(), w.departTeams())
	w.stop()
	w.aside.end()
	w.waitingCalls.hide()
	w.endWaits()
	err = errors.Join(err, w.attached.close())
	if w.session != nil {
		w.session.stop()
	}
	err = errors.Join(err, w.writeAccounts(ctx), w.closeCards(), w.endTrace())
	if w.telling != nil {
		w.telling.Wait()
	}
	w.logs.Close()
	return err
}
