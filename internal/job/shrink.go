package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/progress"
)

// ErrExcluded: the others have taken this rank for dead, and go on without it.
var ErrExcluded = errors.New("the others have taken this rank for dead")

// shrinking is what a rank knows of the World that the survivors of this one make.
//
// The lowest rank that lives leads. Each rank opens devices and sends its contact to
// the one that it takes for the leader, which waits until it has heard from every rank
// that has not failed or left, and then tells all that it has heard from of all of
// them. A leader that dies before it has told anybody is succeeded by the next. One
// that has told some is remembered by them: whoever comes to lead asks everyone, and
// who has been told answers with what he was told.
type shrinking struct {
	// begun: this rank has called Shrink.
	begun atomic.Bool
	// over: the ranks of the new World are agreed on, and there will be no other. It belongs to the goroutine that is in a collective.
	over bool
	// base is what this rank brings into the new World. It and what follows belong to progress.
	base *base
	// proposals are the contacts that ranks have sent to this one.
	proposals map[int]string
	// told[r] is what rank r has told so far.
	told map[int][]survivor
	// decided is the outcome, of which inquired want to be told: ranks that have come to
	// lead, or took themselves for it, while what the leader before them had said was
	// still on its way here.
	decided  []survivor
	inquired map[int]bool
}

// survivor is a rank of the World that shrinks, and its contact in the new one.
type survivor struct {
	rank    int
	contact string
}

// Shrink makes a World of the ranks that have neither failed nor left, in the order of their ranks.
func (w *World) Shrink(ctx context.Context) (*World, error) {
	switch {
	case w == nil:
		return nil, nilArgument("Shrink", "World")
	case ctx == nil:
		return nil, nilArgument("Shrink", "context")
	case w.Collective() != nil:
		return nil, errtext.Errorf("world: Shrink: %w", w.Collective())
	case !w.collective.TryLock():
		return nil, fmt.Errorf("world: Shrink: %w in another goroutine of rank %d", ErrBusy, w.rank)
	}
	defer w.collective.Unlock()
	defer w.EndSpan("Shrink", w.BeginSpan())
	if w.shrinking.over {
		return nil, fmt.Errorf("world: Shrink: %w: this World has been shrunk already, shrink the one that it gave", ErrArgument)
	}
	err := w.giveUpCalls(ctx)
	var small *World
	if err == nil {
		small, err = w.shrink(ctx)
	}
	if err != nil {
		if !w.shrinking.over && !w.round.unfinished {
			w.ledger.shrinks.Store(0)
		}
		return nil, errtext.Errorf("world: Shrink: %w", err)
	}
	w.engine.Lock()
	defer w.engine.Unlock()
	w.small = small
	w.shrunk = append(w.shrunk, small)
	return small, nil
}

func (w *World) shrink(ctx context.Context) (*World, error) {
	// One that was cut short goes on with the devices that the others know.
	b := w.shrinking.base
	if b == nil {
		devices, err := w.reopen(ctx, countRanks(w.job.ranks, w.rank, w.Gone))
		if err == nil {
			b, err = newBase(devices, w.size)
		}
		if err != nil {
			return nil, errors.Join(err, closeDevices(devices[:]))
		}
		w.engine.Lock()
		w.shrinking.base = b
		w.engine.Unlock()
	}
	survivors, err := w.agreeOnSurvivors(ctx, b.contact.text())
	if err != nil {
		return nil, err
	}
	// The others count on this rank from here on, whatever becomes of it.
	w.shrinking.over = true
	rank := slices.IndexFunc(survivors, func(s survivor) bool { return s.rank == w.rank })
	if rank < 0 {
		return nil, ErrExcluded
	}
	small := newWorld(rank, len(survivors), b, newRoster(len(survivors)), w.settings)
	small.roster.reason = small.reason
	before := w.engine.Limits()
	small.changeLimits(func(l *progress.Limits) { l.Yield, l.Yields = before.Yield, before.Yields })
	small.reopen, small.apart = w.reopen, w.apart
	small.vigil, small.vigilRank, small.networkName = w.vigil, w.vigilRank, w.networkName
	small.traceSimulated(b.home.device)
	if t := w.tracing; t != nil {
		if err := small.beginTrace(t.job, t.worlds+1); err != nil {
			return nil, err
		}
	}
	ranks, texts := make([]introduction, len(survivors)), make([]string, len(survivors))
	for i, s := range survivors {
		ranks[i], texts[i] = w.job.ranks[s.rank], s.contact
		if w.vigil != nil {
			small.vigilRanks = append(small.vigilRanks, w.vigilRanks[w.InJob(s.rank)])
		}
	}
	j, err := newJob(ranks, texts)
	if err != nil {
		return nil, err
	}
	if err := small.begin(j); err != nil {
		return nil, err
	}
	if err := small.watch(); err != nil {
		small.stop()
		return nil, err
	}
	w.blameIn(small, survivors)
	if !small.virtual() { // Simulate holds the pipe of its ranks.
		_ = small.holdStats() // Close says why there can be no table.
	}
	return small, nil
}

// departShrunk ends the Worlds that Shrink has made of this one and its teams, and those made of them, for a rank whose body has
// returned. Any of them may be closed. One whose Close has been cut short ends here: no other Close goes on with that.
func (w *World) departShrunk() error {
	var err error
	for _, small := range w.madeByShrink() {
		err = errors.Join(err, small.departShrunk(), small.departUnclosed())
	}
	return err
}

// departUnclosed is depart for a World that no Close has ended, and that no other goroutine closes.
func (w *World) departUnclosed() error {
	select {
	case w.closing <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-w.closing }()
	if w.ended {
		return nil
	}
	w.ended = true
	return w.depart()
}

// madeByShrink returns the Worlds that Shrink has made of the Worlds of an endpoint.
func (e *endpoint) madeByShrink() []*World {
	e.engine.Lock()
	defer e.engine.Unlock()
	return slices.Clone(e.shrunk)
}

// closeUnshrunk closes the devices that Shrink has opened for a World that it did not
// make.
func (w *World) closeUnshrunk() error {
	w.engine.Lock()
	defer w.engine.Unlock()
	if w.small != nil || w.shrinking.base == nil {
		return nil
	}
	return w.shrinking.base.close()
}

// agreeOnSurvivors returns when this rank knows who is in the new World.
func (w *World) agreeOnSurvivors(ctx context.Context, mine string) ([]survivor, error) {
	w.engine.StartBackground()
	wait := w.NewWaiter()
	defer wait.Finish()
	leader := -1
	for {
		if decided := w.lookForSurvivors(mine); decided != nil {
			return decided, nil
		}
		first := 0
		for w.Gone(first) && first != w.rank {
			first++
		}
		if first != w.rank {
			wait.For(first)
		}
		if first != leader {
			leader = first
			if err := w.propose(ctx, leader, mine); err != nil && w.Failure(leader) == nil {
				return nil, err
			}
			wait.Restart()
			continue
		}
		if err := wait.Pause(ctx); err != nil {
			return nil, err
		}
	}
}

// giveUpCalls has others find that this rank comes to no collective, nor to the end of one that was cut short, of which it may have
// done what they need. It abandons a Split that was: ranks that have the team may close it before they shrink.
func (w *World) giveUpCalls(ctx context.Context) error {
	w.shrinking.begun.Store(true)
	number := w.calls.Load() + 1
	if w.FailureCount() != 0 {
		// Others hear why this rank shrinks before they find that it does.
		w.report(number)
	}
	shrinks := uint64(recordShrinks)
	if w.round.unfinished {
		shrinks = uint64(number)<<32 | uint64(recordGivenUp)
		if w.verdict("Shrink", number) == nil {
			w.judged.Store(&verdict{number: number, leaver: w.rank, shrinks: true})
		}
	}
	w.ledger.shrinks.Store(shrinks)
	w.wakeAll()
	if err := w.post.settle(ctx, &w.round.out); err != nil {
		return err
	}
	return errors.Join(w.abandonSplit(ctx))
}

// shrunkBy is the error of a call that needs a rank which has called Shrink instead, maybe this one.
func (w *World) shrunkBy(op string, rank int) error {
	w.missed.Store(true)
	cause := shrinks("has called Shrink, and comes to no other collective of this World: call Shrink here, too, or close this World")
	switch {
	case w.shrinking.over:
		cause = "has called Shrink instead of a collective, and this World has none any more: use the World that Shrink gave, if it gave one, and close this World"
	case rank == w.rank:
		cause = "has called Shrink, which has failed, and others wait for it in no other collective of this World: call Shrink again, or close this World"
	}
	if rank == w.rank {
		return errtext.Errorf("%s: this rank %w", errtext.Call("world", op), cause)
	}
	return &PeerError{Rank: rank, Op: op, Cause: cause}
}

// shrinks is what a rank has done that has called Shrink instead of another collective.
type shrinks string

func (s shrinks) Error() string      { return string(s) }
func (shrinks) Is(target error) bool { return target == ErrLeft }

// propose tells the leader of this rank; a rank that has become the leader asks
// everyone.
func (w *World) propose(ctx context.Context, leader int, mine string) error {
	if leader != w.rank {
		l, err := w.Link(leader)
		if err == nil {
			err = l.TellWithin(ctx, &Message{Kind: kindPropose}, []byte(mine))
			l.Post()
		}
		return err
	}
	for rank := range w.size {
		if rank == w.rank || w.Gone(rank) {
			continue
		}
		// Who cannot be told has failed, and is known to have.
		if l, err := w.Link(rank); err == nil && l.TellWithin(ctx, &Message{Kind: kindInquire}, nil) == nil {
			l.Post()
		}
	}
	return nil
}

// lookForSurvivors is the outcome, if this rank has been told of it, or leads and has
// heard of all.
func (w *World) lookForSurvivors(mine string) []survivor {
	w.engine.Lock()
	defer w.engine.Unlock()
	s := &w.shrinking
	if s.decided != nil {
		return s.decided
	}
	if w.lowerLives() {
		return nil
	}
	var all []survivor
	for rank := range w.size {
		text, proposed := s.proposals[rank]
		switch {
		case rank == w.rank:
			text = mine
		case w.Gone(rank):
			continue
		case !proposed:
			return nil
		}
		all = append(all, survivor{rank, text})
	}
	s.decided = all
	for rank := range inOrder(s.proposals) {
		w.tellSurvivors(rank)
	}
	return all
}

// lowerLives tells whether a rank before this one lives, who leads then.
func (w *World) lowerLives() bool {
	for rank := range w.rank {
		if !w.Gone(rank) {
			return true
		}
	}
	return false
}

// tellSurvivors tells a rank of the outcome, with the mutex of progress.
func (w *World) tellSurvivors(rank int) {
	l := w.links[rank].Load()
	if l == nil || l.broken.Load() != nil {
		return
	}
	for _, s := range w.shrinking.decided {
		l.Reply(&Message{Kind: kindSurvivor, X: uint64(s.rank)}, []byte(s.contact))
	}
	l.Reply(&Message{Kind: kindSurvivors, X: uint64(len(w.shrinking.decided))}, nil)
}

// serveShrink serves the messages of other ranks that Shrink.
func (w *World) serveShrink(from *Link, m *Message, payload []byte) error {
	s := &w.shrinking
	if len(payload) > longestText {
		return fmt.Errorf("%w: a contact of %s, allowed are %d", ErrMessage, errtext.Count(len(payload), "byte"), longestText)
	}
	if w.roster.failed[from.rank].Load() != nil {
		// It may have been stopped, and count others as failed that live. Another rank that has its outcome gives that when it is asked.
		return nil
	}
	switch m.Kind {
	case kindPropose:
		s.proposals[from.rank] = string(payload)
		if s.decided != nil {
			w.tellSurvivors(from.rank)
		}
	case kindInquire:
		if s.decided != nil {
			w.tellSurvivors(from.rank)
		} else {
			s.inquired[from.rank] = true
		}
	case kindSurvivor:
		if m.X >= uint64(w.size) || len(s.told[from.rank]) >= w.size {
			return fmt.Errorf("%w: rank %d survives", ErrMessage, m.X)
		}
		s.told[from.rank] = append(s.told[from.rank], survivor{int(m.X), string(payload)})
	case kindSurvivors:
		told := s.told[from.rank]
		delete(s.told, from.rank)
		ordered := slices.IsSortedFunc(told, func(a, b survivor) int { return a.rank - b.rank })
		if m.X != uint64(len(told)) || len(told) == 0 || !ordered {
			return fmt.Errorf("%w: %d survivors, %d told", ErrMessage, m.X, len(told))
		}
		if s.decided == nil {
			s.decided = told
			for rank := range inOrder(s.inquired) {
				w.tellSurvivors(rank)
			}
		}
	}
	return nil
}
