package job

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/progress"
)

// A rank that has slept long in a call notes in its ledger which that is, and whom it waits for in the end. Others who wait
// for it look there, or ask, and say so when their contexts cut them short. So nothing is done for it in a
// call that does not take long. A call that is made again, after its context has cut it short, goes on where it was.
//
// What a rank says by this is no ErrMismatch: goroutines of a rank may be in a Barrier and in the Fence of a window at once, so
// a rank that is in one of them may come to the other yet.

// A straggler is the rank that a call waits for in the end, -1 if that is not known, and the call that this one has slept
// long in, 0 if in none.
type straggler struct {
	rank int
	in   uint32
}

// A plight is what a rank has slept long in: the call, 0 if none, and a mark that tells it from others of that
// name. Ranks with the same are in the same call.
type plight struct {
	call, mark uint32
	straggler
}

// The bits of a plight's word: from 0 on the call, then the straggler's, 1 + its rank, and the mark.
const (
	callBits  = 8
	rankShift = 2 * callBits
	rankBits  = 24
	markShift = rankShift + rankBits
)

func (p *plight) word() uint64 {
	return uint64(p.call) | uint64(p.in)<<callBits | uint64(p.rank+1)<<rankShift | uint64(p.mark)<<markShift
}

func plightOver(word uint64) plight {
	field := func(from, bits int) uint32 { return uint32(word >> from & (1<<bits - 1)) }
	return plight{field(0, callBits), field(markShift, 64-markShift), straggler{int(field(rankShift, rankBits)) - 1, field(callBits, callBits)}}
}

// plight is that of a collective call, without whom it waits for.
func (s *signature) plight() plight {
	return plight{call: s.call & (1<<callBits - 1), mark: s.number & (1<<callBits - 1)}
}

// plight is that of a call that comes to a number of the meeting.
func (m *Meeting) plight(op string, number uint32) plight {
	if m == m.world.barrier {
		return m.world.round.signature.plight()
	}
	// Of the meeting's number and of this one it has what tells apart those that can be at one time.
	mark := (m.number<<callBits | number&(1<<callBits-1)) & (1<<(64-markShift) - 1)
	return plight{call: uint32(max(slices.Index(callNames[:], op), 0)), mark: mark}
}

// plightOf is what is known of a rank.
func (w *World) plightOf(rank int) plight {
	if !w.Mapped(rank) {
		return w.askPlight(rank)
	}
	if !w.Acquainted(rank) {
		return plightOver(0)
	}
	l, err := w.ledgerOf(rank)
	if err != nil {
		return plightOver(0)
	}
	return plightOver(l.plight.Load())
}

// seek finds out whom a wait for a rank is for in the end, which is that rank, or if it is in the same call the
// one that it waits for itself. Others find it here.
func (p *Waiter) seek(here plight, rank int) {
	w := p.world
	here.straggler = straggler{rank: max(rank, -1)}
	if rank >= 0 {
		there := w.plightOf(rank)
		switch {
		case there.call != here.call || there.mark != here.mark:
			here.in = there.call
		case there.rank >= 0 && there.rank < w.size && there.rank != w.rank:
			here.straggler = there.straggler
		}
	}
	noted := here.word()
	keptOf(p.Sleeper()).noted = noted
	w.ledger.plight.Store(noted)
}

// A cutWait is what is left of the last wait that had found out whom it is for and that its context has cut short: what it had
// noted, and how long it had slept since it last looked. Ranks that repeat a call at one pace, a sleep apart, would else look
// at each other only while each has just begun again, for as long as they do.
type cutWait struct {
	noted  atomic.Uint64
	asleep atomic.Int64
}

// resume has a wait go on where the last one was cut short, if that was in the same call: others find at once what that had
// found, and this one looks again when both together have slept long.
func (p *Waiter) resume(here plight) {
	w := p.world
	noted := w.cut.noted.Load()
	if before := plightOver(noted); before.call != here.call || before.mark != here.mark || !w.cut.noted.CompareAndSwap(noted, 0) {
		return
	}
	sleeper := p.Sleeper()
	keptOf(sleeper).noted = noted
	sleeper.Asleep += time.Duration(w.cut.asleep.Load())
	w.ledger.plight.Store(noted)
}

// resumable reports whether there may be a wait to resume.
func (p *Waiter) resumable() bool {
	return keptOf(p.Sleeper()).noted == 0 && p.world.cut.noted.Load() != 0
}

// cutShort keeps what resume needs.
func (w *World) cutShort(s *progress.Sleeper) {
	if k := keptOf(s); k.noted != 0 {
		w.cut.asleep.Store(int64(s.Asleep))
		w.cut.noted.Store(k.noted)
	}
}

// found is what seek has found of a wait that is for a rank first, or for some if that is less than 0.
func (p *Waiter) found(rank int) straggler {
	noted := keptOf(p.Sleeper()).noted
	if noted == 0 {
		return straggler{rank: rank}
	}
	return plightOver(noted).straggler
}

// forget has others not find any more what seek has told them.
func (w *World) forget(s *progress.Sleeper) {
	k := keptOf(s)
	w.ledger.plight.CompareAndSwap(k.noted, 0)
	k.noted = 0
}

// waitsFor is what a call says of a straggler.
func (s straggler) waitsFor() string {
	text := fmt.Sprintf(": it waits for rank %d", s.rank)
	if s.in != 0 {
		text += ", which is in " + callName(s.in)
	}
	return text
}
