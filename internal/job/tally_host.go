package job

import (
	"context"
	"fmt"
)

// Mates are ranks that map each other's memory. They tally through the block of the first of
// them, which leads:
//
//   - Each adds to the counts there what it has sent, and then itself to arrived. When all
//     have, the one that leads tells the other hosts of them, and what it hears in the end,
//     to each in its own block. So who has returned from Tally without an error touches
//     nobody's block any more, and nobody tells it anything in its: the last one may be
//     followed by freeing it. One that was not told yet may still look, in the block of the
//     one that leads, whether a rank is absent: it believes what it finds there only if it
//     was not told since, and the block is in use until then. Where Tally has returned an
//     error others may go on to write there: it is freed when none of them can.
//   - Counts are added to for the next number only by who was told of the last: they are
//     clear by then.
//   - EndTally is a barrier of mates: each adds itself to leaving, and the last one says that
//     all have. It is left out where nobody in the job has sent anything.
//   - Mates notice that one has ended, but not that one has stopped, and need no links for
//     what they do. So each makes one with the rank that leads the next host, which notices
//     it, and tells the others; and that one does, where it waits, with those who may not
//     have come so far.

// beWatched makes the link over which this rank is missed if it stops, and hears of mates that
// have. Where it cannot be made now the next call tries again.
func (w *World) beWatched() {
	if watcher := w.leaderAfter(1); len(w.hosts.ranks) > 1 && w.links[watcher].Load() == nil && !w.Gone(watcher) {
		_, _ = w.Link(watcher)
	}
}

// watchOthers makes those links with the host before this one's.
func (w *World) watchOthers() {
	if hosts := len(w.hosts.ranks); hosts > 1 && w.leads() {
		for _, rank := range w.hosts.ranks[(w.hosts.of[w.rank]+hosts-1)%hosts] {
			w.attend(rank)
		}
	}
}

// announce tells the one that leads what this rank has sent, once, and gives its block.
func (m *Meeting) announce(ctx context.Context, op string, sent func(rank int) bool) (tallyBlock, error) {
	t, w := &m.tally, m.world
	lead, err := m.leader(ctx, op)
	if err != nil || t.announced {
		return lead, err
	}
	w.beWatched()
	for rank := range w.size {
		if sent(rank) {
			lead.count(rank).Add(1)
		}
	}
	lead.callers().note(m.mine.call(), w.rank)
	t.announced = true
	mates := w.mates()
	if int(lead.arrived().Add(1)) == len(mates) && !w.leads() {
		w.Ring(mates[0])
	}
	return lead, nil
}

// leader is the block of the one that leads.
func (m *Meeting) leader(ctx context.Context, op string) (tallyBlock, error) {
	return m.mate(ctx, op, m.world.mates()[0])
}

// mate is the block of a mate.
func (m *Meeting) mate(ctx context.Context, op string, rank int) (tallyBlock, error) {
	if rank == m.world.rank {
		return m.own.tally(m.tally.at), nil
	}
	b, err := m.blockIn(ctx, op, rank)
	if err != nil {
		return tallyBlock{}, err
	}
	return b.tally(m.tally.at), nil
}

// hearMates returns when all have told this rank, which leads.
func (m *Meeting) hearMates(ctx context.Context, op string, own tallyBlock) error {
	all := uint32(len(m.world.mates()))
	if reached(own.arrived(), all) {
		return nil
	}
	return m.hear(ctx, op, own.arrived(), all, fromMates)
}

// tellMates tells all mates the result for each, and by which calls ranks have come, if these differ.
func (m *Meeting) tellMates(ctx context.Context, op string, number uint32, result func(rank int) uint32, all called) error {
	w := m.world
	mates := w.mates()
	if len(mates) == 1 {
		return nil
	}
	t := &m.tally
	t.blocks = t.blocks[:0]
	for _, rank := range mates[1:] {
		b, err := m.mate(ctx, op, rank)
		if err != nil {
			// None was told.
			return err
		}
		b.arrivals().Store(result(rank))
		b.any().Store(0)
		if t.any {
			b.any().Store(1)
		}
		if all.differ() {
			b.differing().Store(uint64(all))
		}
		t.blocks = append(t.blocks, b)
	}
	own := m.own.tally(t.at)
	for rank := range w.size {
		if count := own.count(rank); count.Load() != 0 {
			count.Store(0)
		}
	}
	own.callers().clear()
	own.arrived().Store(0)
	// It may be that nobody was waited for at the end of many before.
	own.passed().Store(number - 1)
	for _, b := range t.blocks {
		b.told().Store(number)
	}
	m.ringMates()
	return nil
}

// hearResult returns when this rank was told the result. Who was told may leave the job before
// this one is: what counts is that the one that leads has not left.
func (m *Meeting) hearResult(ctx context.Context, op string, number uint32) (arrivals int, anything bool, err error) {
	t := &m.tally
	own := m.own.tally(t.at)
	if !reached(own.told(), number) {
		if err := m.hear(ctx, op, own.told(), number, m.world.mates()[0]); err != nil {
			return 0, false, err
		}
	}
	m.ringMates()
	told := own.arrivals().Load()
	if told > uint32(m.world.size) {
		m.world.roster.fail(m.world.mates()[0], fmt.Errorf("%w: it tells that %d of %d ranks have sent something to this one", ErrMessage, told, m.world.size))
		return 0, false, m.world.anyFailure(op)
	}
	t.result, t.any, t.finished = int(told), own.any().Load() != 0, true
	return t.result, t.any, compared(op, number, called(own.differing().Load()))
}

// EndTally returns when all mates have called it behind the last Tally. When ctx has ended it,
// the same call goes on.
func (m *Meeting) EndTally(ctx context.Context, op string) error {
	t, w := &m.tally, m.world
	mates, number := w.mates(), t.number.Load()
	if len(mates) == 1 || !t.any {
		return nil
	}
	lead, err := m.leader(ctx, op)
	if err != nil {
		return err
	}
	w.RaceRelease()
	defer w.RaceAcquire()
	if !t.left {
		t.left = true
		if int(lead.leaving().Add(1)) == len(mates) {
			lead.leaving().Store(0)
			lead.passed().Store(number)
			if !w.leads() {
				w.Ring(mates[0])
			}
		}
	}
	if !reached(lead.passed(), number) {
		if err := m.hear(ctx, op, lead.passed(), number, fromMates); err != nil {
			return err
		}
	}
	m.ringMates()
	return nil
}

// ringMates wakes those that this rank wakes when it has heard what all wait for: they wake
// each other along a binomial tree.
func (m *Meeting) ringMates() {
	mates := m.world.mates()
	me := 0
	for mates[me] != m.world.rank {
		me++
	}
	for distance := 1; me+distance < len(mates); distance *= 2 {
		if distance > me {
			m.world.Ring(mates[me+distance])
		}
	}
}
