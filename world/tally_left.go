package world

import (
	"encoding/binary"
	"sync/atomic"
)

// Who has left the job before it began a tally is missed in that one and in those behind it,
// but not in one that it had begun: others may still be in that, and come to its end. So
// whoever hears of a rank that has left keeps the number of the last tally that it can have
// begun, too: in a word that has 1 + the rank, and the number above 32 bits, or is 0. Of two
// that have left it keeps the one with the lower number.

// missing keeps in word that a rank has left which can have begun no tally after number, and
// tells whether that is new.
func missing(word *atomic.Uint64, number uint32, rank int) bool {
	for {
		before := word.Load()
		if before != 0 && int32(number-uint32(before>>32)) >= 0 {
			return false
		}
		if word.CompareAndSwap(before, uint64(number)<<32|uint64(rank+1)) {
			return true
		}
	}
}

// missed is the rank in a word if it is absent from the tally at hand.
func (m *Meeting) missed(word *atomic.Uint64) (rank int, ok bool) {
	leaver := word.Load()
	rank = int(uint32(leaver)) - 1
	return rank, leaver != 0 && rank < m.world.size && int32(uint32(leaver>>32)-m.tally.number.Load()) < 0
}

// begun is what a rank that leaves tells of the tallies that it has begun.
func (w *World) begun() (text []byte) {
	for number, m := range inOrder(w.meetings) {
		if len(text)+countBytes <= w.linkLetter-messageHeader {
			text = binary.LittleEndian.AppendUint32(text, number)
			text = binary.LittleEndian.AppendUint32(text, m.tally.number.Load())
		}
	}
	return text
}

// leftAfter notes what a rank that has left tells of the tallies that it had begun.
func (w *World) leftAfter(rank int, text []byte) {
	for ; len(text) >= countBytes; text = text[countBytes:] {
		if m := w.meetings[binary.LittleEndian.Uint32(text)]; m != nil {
			missing(&m.tally.leaver, binary.LittleEndian.Uint32(text[4:]), rank)
		}
	}
}

// mateLeft is a mate that has left the job.
func (m *Meeting) mateLeft() (rank int, left bool) {
	for _, mate := range m.world.mates() {
		if mate == m.world.rank {
			continue
		}
		if rank, left = m.world.barrier.left(mate); left {
			return rank, true
		}
	}
	return 0, false
}

// absent is a rank that has left before it did its part of the tally at hand, if this one
// has heard of one, itself or by a mate.
func (m *Meeting) absent() (rank int, ok bool) {
	if rank, ok = m.missed(&m.tally.leaver); ok || len(m.world.mates()) == 1 {
		return rank, ok
	}
	lead, err := m.leader("Tally")
	if err != nil {
		return 0, false
	}
	return m.missed(lead.absent())
}

// tellAbsent tells those who may hear it from nobody else that a rank has left before it did
// its part of the tally at hand: mates, and if this rank leads those who may wait for what it
// would have told in a round. They give up, too, and tell others.
func (m *Meeting) tellAbsent(rank int) {
	w, last := m.world, m.tally.number.Load()-1
	if mates := w.mates(); len(mates) > 1 {
		if lead, err := m.leader("Tally"); err == nil && missing(lead.absent(), last, rank) {
			for _, mate := range mates {
				if mate != w.rank {
					w.Ring(mate)
				}
			}
		}
	}
	if !w.leads() {
		return
	}
	for k, distance := 0, 1; distance < len(w.hosts.ranks); k, distance = k+1, 2*distance {
		to := w.leaderAfter(distance)
		if to == rank || w.Gone(to) {
			continue
		}
		if l, err := w.Link(to); err == nil {
			l.Reply(&Message{Kind: kindAbsent, Service: m.number, A: uint8(k), X: uint64(last), Y: uint64(rank)}, nil)
		}
	}
}
