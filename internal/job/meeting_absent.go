package job

import (
	"context"
	"encoding/binary"
	"sync/atomic"

	"github.com/onesided/rma/verbs/channel"
)

// Who has left the job before it came to a number of a meeting is missed in that one and in those behind it,
// but not in one that it had come to: others may still be in that, and come to its end. So
// whoever hears of a rank that has left keeps the last number that it can have
// come to, too: in a word that has 1 + the rank, and the number above 32 bits, or is 0. Of two
// that have left it keeps the one with the lower number.
//
// Who waits for such a rank gives the meeting up, for good, and says so to those that wait for it itself, or who
// find it where it is mapped: they give up too, and so on.

// missing keeps in word that a rank has left which can have come to no number after this one, and
// tells whether that is new.
//
// A word that others go on to change is left to them.
func missing(word *atomic.Uint64, number uint32, rank int) bool {
	for range missingLooks {
		before := word.Load()
		if before != 0 && int32(number-uint32(before>>32)) >= 0 {
			return false
		}
		if word.CompareAndSwap(before, uint64(number)<<32|uint64(rank+1)) {
			return true
		}
	}
	return false
}

// missingLooks is how often missing tries.
const missingLooks = 1000

// missed is the rank in a word if it is absent from a number.
func (m *Meeting) missed(word *atomic.Uint64, number uint32) (rank int, ok bool) {
	leaver := word.Load()
	rank = int(uint32(leaver)) - 1
	return rank, rank >= 0 && rank < m.world.size && rank != m.world.rank && int32(uint32(leaver>>32)-number) < 0
}

// comeTo is what a rank that leaves tells of its meetings.
func (w *World) comeTo() (text []byte) {
	for number, m := range inOrder(w.meetings) {
		if len(text)+countBytes <= w.linkLetter-channel.StampBytes-longestHeader {
			text = binary.LittleEndian.AppendUint32(text, number)
			text = binary.LittleEndian.AppendUint32(text, m.own.come().Load())
		}
	}
	return text
}

// leftAfter notes what a rank that has left tells of its meetings.
func (w *World) leftAfter(rank int, text []byte) {
	for ; len(text) >= countBytes; text = text[countBytes:] {
		if m := w.meetings[binary.LittleEndian.Uint32(text)]; m != nil {
			missing(&m.leaver, binary.LittleEndian.Uint32(text[4:]), rank)
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

// absent is a rank that is missed in a number, if this one has heard of one: by a message, or where it waits for rank
// from in that one's block, in which it looks only when the wait has slept, and any has left as far as it sees. It looks
// whenever it wakes then, however soon that is: a rank that gives up wakes it only once.
func (m *Meeting) absent(number uint32, from int, slept bool) (rank int, ok bool) {
	if rank, ok = m.missed(&m.leaver, number); ok {
		return rank, true
	}
	switch {
	case m.tally.used.Load():
		if mates := m.world.mates(); len(mates) == 1 || !m.world.Acquainted(mates[0]) {
			return 0, false
		}
		if lead, err := m.leader(context.Background(), "Tally"); err == nil {
			return m.missed(lead.absent(), number)
		}
	case slept && from >= 0 && m.world.Mapped(from) && m.world.Acquainted(from):
		if _, some := m.world.barrier.left(-1); !some && m.world.Mapped(0) {
			return 0, false
		}
		if b, err := m.block("Meet", from); err == nil {
			return m.missed(b.absent(), number)
		}
	}
	return 0, false
}

// GiveUp says that this rank comes to the end of no call of the meeting from number on, of which it may have done
// its part, because another has left: to those that wait for it, in Meet or, as tallied tells, in Tally. They give up, too.
func (m *Meeting) GiveUp(number uint32, leaver int, tallied bool) {
	last := number - 1
	if t := &m.tally; tallied && t.finished && t.number.Load() == number {
		// Who is absent from EndTally has done its part of the Tally.
		last = number
	}
	if !missing(&m.gaveUp, last, leaver) {
		return
	}
	if tallied {
		m.giveUpTally(last, leaver)
		return
	}
	w := m.world
	missing(m.own.absent(), last, leaver)
	message := Message{Kind: kindAbsent, X: uint64(last), Y: uint64(leaver)}
	for k, rank := range w.awaiting() {
		if !w.rooted {
			message.A = uint8(k)
		}
		m.tellAbsent(rank, message)
	}
}

// awaiting are the ranks that wait for this one in meetings: those that hear from it, in the order of the rounds, or at the
// root that and those that it releases.
func (w *World) awaiting() (ranks []int) {
	if w.rooted {
		if w.rank != 0 {
			ranks = append(ranks, 0)
		}
		for child, to := w.children(w.rank); child < to; child++ {
			ranks = append(ranks, child)
		}
		return ranks
	}
	for distance := 1; distance < w.size; distance *= 2 {
		ranks = append(ranks, (w.rank+distance)%w.size)
	}
	return ranks
}

// giveUpTally tells mates, and if this rank leads those who may wait for what it
// would have told in a round.
func (m *Meeting) giveUpTally(last uint32, leaver int) {
	w := m.world
	if mates := w.mates(); len(mates) > 1 && w.Acquainted(mates[0]) {
		if lead, err := m.leader(context.Background(), "Tally"); err == nil && missing(lead.absent(), last, leaver) {
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
	message := Message{Kind: kindAbsent, B: roundOfTally, X: uint64(last), Y: uint64(leaver)}
	for distance := 1; distance < len(w.hosts.ranks); distance *= 2 {
		m.tellAbsent(w.leaderAfter(distance), message)
		message.A++
	}
}

// tellAbsent tells a rank that waits for this one, or has it look.
func (m *Meeting) tellAbsent(to int, message Message) {
	w := m.world
	switch {
	case to == int(message.Y) || w.stranger(to) || w.Gone(to):
	case w.Mapped(to):
		w.Ring(to)
	default:
		message.Service = m.number
		if l, err := w.Link(to); err == nil {
			l.Reply(&message, nil)
		}
	}
}
