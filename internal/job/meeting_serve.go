package job

import (
	"fmt"
	"math/bits"
)

// serve does what a message of a rank that does not map this one's block asks, when
// it is the one whose part it is to ask that.
func (m *Meeting) serve(from *Link, message *Message, payload []byte) error {
	w, number, k := m.world, uint32(message.X), int(message.A)
	switch message.Kind {
	case kindRound, kindCounts:
		if message.B == roundOfTally {
			return m.serveTally(from, message, payload)
		}
		if message.Kind == kindCounts || m.tally.used.Load() || !w.hears(k, from.rank) {
			return fmt.Errorf("%w: rank %d tells of round %d", ErrMessage, from.rank, k)
		}
		if last := m.own.round(k).Load(); !follows(number, last) {
			return m.outOfTurn(from, message, last)
		}
		m.own.reach(k, number, message.Y)
	case kindAbsent:
		if !m.hearsOfAbsent(message, from.rank) || message.Y >= uint64(w.size) || int(message.Y) == w.rank {
			return fmt.Errorf("%w: rank %d tells that rank %d is absent", ErrMessage, from.rank, message.Y)
		}
		missing(&m.leaver, number, int(message.Y))
	case kindArrive:
		if w.rank != 0 {
			return fmt.Errorf("%w: rank %d takes rank %d for the root", ErrMessage, from.rank, w.rank)
		}
		// Nobody comes to the next before all have come to the last.
		if last := m.own.released().Load(); number != last+1 || m.arrivals[from.rank].Load() == number {
			return m.outOfTurn(from, message, last)
		}
		if message.A >= MostCalls {
			return fmt.Errorf("%w: rank %d comes by call %d", ErrMessage, from.rank, message.A)
		}
		m.arrivals[from.rank].Store(number)
		m.own.callers().note(message.A, from.rank)
		switch last, unlike := m.own.arrive(number, w.size, message.Y, message.Z); {
		case unlike:
			m.unlike.Store(true)
		case last:
			m.own.tellDiffering(m.own.differed())
			m.own.released().Store(number)
		}
	case kindRelease:
		if from.rank != parent(w.rank) {
			return fmt.Errorf("%w: rank %d releases rank %d", ErrMessage, from.rank, w.rank)
		}
		if last := m.own.released().Load(); !follows(number, last) {
			return m.outOfTurn(from, message, last)
		}
		m.own.tellDiffering(called(message.Y))
		m.own.released().Store(number)
	default:
		return fmt.Errorf("%w of kind %d", ErrMessage, message.Kind)
	}
	return nil
}

// hearsOfAbsent tells whether it is the part of a rank to tell this one that another is absent.
func (m *Meeting) hearsOfAbsent(message *Message, from int) bool {
	w, k := m.world, int(message.A)
	switch {
	case message.B == roundOfTally:
		return m.tally.hears(w, k, from)
	case w.rooted:
		return w.rank == 0 || from == parent(w.rank)
	}
	return w.hears(k, from)
}

// serveTally is serve for rounds of tallies, which count for no others.
func (m *Meeting) serveTally(from *Link, message *Message, payload []byte) error {
	t, number, k := &m.tally, uint32(message.X), int(message.A)
	if !t.hears(m.world, k, from.rank) {
		return fmt.Errorf("%w: rank %d tells of round %d of a tally", ErrMessage, from.rank, k)
	}
	last := t.heard[k].Load()
	if !follows(number, last) {
		return m.outOfTurn(from, message, last)
	}
	if number != last {
		if err := m.count(message, payload); err != nil {
			return err
		}
	}
	if message.Kind == kindRound {
		t.calls[k][number&1].Store(message.Y)
		t.heard[k].Store(number)
	}
	return nil
}

// hears tells whether this rank hears of round k from another.
func (w *World) hears(k, from int) bool {
	return k < bits.Len(uint(w.size-1)) && (from+1<<k)%w.size == w.rank
}

// follows tells whether what a rank tells next may be number, after last: in a call that
// was cut short and is repeated it says the same again.
func follows(number, last uint32) bool { return number == last || number == last+1 }

func (m *Meeting) outOfTurn(from *Link, message *Message, last uint32) error {
	return fmt.Errorf("%w of kind %d: rank %d tells of number %d of meeting %d, the last was %d", ErrMessage, message.Kind, from.rank, message.X, m.number, last)
}

// arrive counts a rank at the root, with its history and the sum of its histories
// so far. It tells whether it is the last, and whether that finds that histories are not the same.
func (b *meetingBlock) arrive(number uint32, size int, history, histories uint64) (last, unlike bool) {
	if history != 0 {
		b.histories().Add(history)
	}
	if b.arrived().Add(1) != number*uint32(size) {
		return false, false
	}
	return true, history != 0 && b.histories().Load() != histories*uint64(size)
}

// differed is for the last to come: by which calls ranks have come, if these differ, else 0.
func (b *meetingBlock) differed() called {
	all := b.callers().all()
	b.callers().clear()
	if all.differ() {
		return all
	}
	return 0
}

// tellDiffering tells by which calls ranks have come, if these differ, before the owner is released.
func (b *meetingBlock) tellDiffering(differing called) {
	if differing != 0 {
		b.differing().Store(uint64(differing))
	}
}
