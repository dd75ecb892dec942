package job

import "sync/atomic"

// leave tells those who will wait for this rank in vain that it has left. Who left
// has come to the end of every meeting that it called, so a flag that it has not
// set by now it never will.
func (m *Meeting) leave() {
	w := m.world
	m.own.left().Store(uint32(w.rank) + 1)
	if !w.Mapped(0) {
		_, _ = w.Link(0)
	} else if root, err := m.block("Close", 0); err == nil {
		root.leaver().CompareAndSwap(0, uint32(w.rank)+1)
	}
	// Those that wait for this rank in meetings, and map it, look at the flags when they wake, and tell others: see GiveUp.
	// The leader of a host waits for its mates in a Tally.
	for _, rank := range append(w.awaiting(), w.mates()[0]) {
		if rank != w.rank && w.Mapped(rank) && !w.stranger(rank) && !w.Gone(rank) {
			w.Ring(rank)
		}
	}
	w.engine.Lock()
	defer w.engine.Unlock()
	w.left.Store(true)
	come := w.comeTo()
	for _, c := range w.cards {
		if c == nil {
			continue
		}
		for _, l := range inOrder(c.links) {
			if l.world == w && !l.mute {
				l.Reply(&Message{Kind: kindLeft}, come)
			}
		}
	}
}

// part notes that a rank has left.
func (w *World) part(rank int) {
	w.parted[rank].Store(true)
	if w.rank == 0 {
		w.barrier.own.leaver().CompareAndSwap(0, uint32(rank)+1)
	}
}

// left tells whether rank has left, or any rank if rank is -1, and which, as far as this rank is acquainted with who knows.
func (m *Meeting) left(rank int) (int, bool) {
	word := (*atomic.Uint32)(nil)
	switch {
	case rank >= 0 && !m.world.Mapped(rank):
		m.world.attend(rank)
		return rank, m.world.parted[rank].Load()
	case rank < 0 && !m.world.Mapped(0), !m.world.Acquainted(max(rank, 0)):
		return 0, false
	case rank < 0:
		root, err := m.block("Close", 0)
		if err != nil {
			return 0, false
		}
		word = root.leaver()
	default:
		b, err := m.block("Close", rank)
		if err != nil {
			return 0, false
		}
		if b.context().Load() != m.world.context {
			// It has closed the team, and given back its block.
			return rank, true
		}
		word = b.left()
	}
	// Any rank that maps the block can have written it: what names no rank, or another than the block's own, says nothing.
	leaver := int(word.Load()) - 1
	if leaver < 0 || leaver >= m.world.size || rank >= 0 && leaver != rank || leaver == m.world.rank && !m.world.left.Load() {
		return 0, false
	}
	return leaver, true
}

// absentee is a rank that has left, or given up because of one that has, and has not come to a number that this one waits
// for at the root, if it maps that. It looks for one only once the root knows that any has left.
func (m *Meeting) absentee(number uint32) (leaver int, ok bool) {
	w := m.world
	first, some := w.barrier.left(-1)
	if !some {
		return 0, false
	}
	for rank := range w.size {
		if !w.Acquainted(rank) {
			continue
		}
		// In this order: it looks at memory of those only that it has looked at before.
		leaver, ok = rank, w.Gone(rank) || rank == first
		come := m.comeOf(rank)
		if come == nil || reached(come, number) || w.Failure(rank) != nil {
			continue
		}
		if b := m.blocks[rank].Load(); !ok && b != nil {
			leaver, ok = m.missed(b.absent(), number)
		}
		if ok {
			// Where all have come it may have freed its block before.
			return leaver, !m.over(max(parent(w.rank), 0), number)
		}
	}
	return 0, false
}

// abandoner is a rank that has left this team without coming to the call that has begun. A wait for all ranks asks for it: a rank that
// abandons a team may not have told rank 0.
func (m *Meeting) abandoner() (rank int, ok bool) {
	w := m.world
	if w == w.root {
		return 0, false
	}
	for rank := range w.size {
		if rank == w.rank {
			continue
		}
		// In this order: it may come, and then leave.
		_, left := m.left(rank)
		if come := m.comeOf(rank); left && (come == nil || !reached(come, w.number+1)) {
			return rank, true
		}
	}
	return 0, false
}

// isRound reports whether a word is this rank's flag of a round of Meet. Others are numbered otherwise.
func (m *Meeting) isRound(word *atomic.Uint32) bool {
	for k := 0; 1<<k < m.world.size; k++ {
		if word == m.own.round(k) {
			return !m.tally.used.Load()
		}
	}
	return false
}

// absentBeside returns a rank that has left and has not come to a number, to which rank from, for which this one waits in
// a round, has not come either, and may never. It looks only where it maps both. While from has not come nobody is at
// the end of the call, and has given back its block: so it looks at from before and after.
func (m *Meeting) absentBeside(from int, number uint32) (leaver int, ok bool) {
	w := m.world
	seen := func(rank int) bool { return rank != w.rank && w.Mapped(rank) && w.Acquainted(rank) }
	absent := func(rank int) bool {
		b, err := m.block("Meet", rank)
		return err == nil && !reached(b.come(), number)
	}
	if !seen(from) || !absent(from) {
		return 0, false
	}
	for rank := range w.size {
		if seen(rank) && w.Gone(rank) && w.Failure(rank) == nil && absent(rank) {
			return rank, absent(from)
		}
	}
	return 0, false
}

// over tells whether rank, or one of those that release it, knows that all have come to a number, or cannot be
// looked at. Each of their blocks is in use until the next one is released: it looks from the root on, and what it finds
// in them counts only if this rank is still not released then.
func (m *Meeting) over(rank int, number uint32) bool {
	if rank > 0 && m.over(parent(rank), number) || !m.world.Mapped(rank) {
		return true
	}
	b, err := m.block("Close", rank)
	return err != nil || reached(b.released(), number) || rank == 0 && reached(b.passed(), number)
}

// attend sees to it that this rank hears of the end of one that it waits for and
// does not map: there is a link to it.
func (w *World) attend(rank int) {
	if w.links[rank].Load() != nil || w.Failure(rank) != nil || w.parted[rank].Load() {
		return
	}
	if !w.engine.TryLock() {
		return
	}
	w.engine.Unlock()
	if _, err := w.Link(rank); err != nil && w.Failure(rank) == nil {
		// This rank cannot, and would not hear of it: it says so, and not at each look.
		if now := w.Now(); int64(now) >= w.lackTold.Load() {
			w.lackTold.Store(int64(now + acceptNotice))
			w.lack(rank, err)
		}
	}
}

// endedLeaving is a rank, of all if from is -1, that has left and then ended: had it come to the
// last meeting, and told of that, it would have been heard before.
func (w *World) endedLeaving(from int) (rank int, ended bool) {
	over := func(rank int) bool {
		l := w.links[rank].Load()
		return l != nil && w.parted[rank].Load() && (l.broken.Load() != nil || l.gone.Load() != nil)
	}
	if from >= 0 {
		return from, over(from)
	}
	for rank := range w.size {
		if over(rank) {
			return rank, true
		}
	}
	return 0, false
}
