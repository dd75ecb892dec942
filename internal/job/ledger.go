package job

import (
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"

	"github.com/onesided/rma/internal/errtext"
)

// A signature is what must be the same on every rank in a collective call. Barrier
// has nothing but its call and number.
type signature struct {
	call, number uint32
	// root, and the size and layout of an element.
	root, element uint32
	kind          uint64
	// part is the length in bytes of what a rank gives or gets.
	part uint64
}

// Ranks that disagree find out in three ways, none of which costs a look at another
// rank's memory while all goes well. Each message has its call's signature and a
// hash of all calls before; so has each flag of a barrier. And the ledger is where a
// rank tells the others, in memory that they map, which collective it calls: one
// that waits in vain looks there whether the rank that it waits for has called the
// same.
//
// A rank that finds two that disagree, or that one has left, tells so in the
// verdicts of all: later calls and those that wait fail with it. A verdict holds
// from the number of a call on, because calls before may still end well.

// publish tells that this rank calls s.
func (w *World) publish(s *signature, e *elementType) {
	if e != nil && w.ledger.kind.Load() != e.kind {
		w.ledger.kind.Store(0)
		storeText(w.ledger.name[:], e.name)
		w.ledger.kind.Store(e.kind)
	}
	w.ledger.records[s.number%ledgerDepth].store(s)
	if s.number%refreshed == 0 {
		w.refresh(s.number)
	}
}

func (r *record) store(s *signature) {
	word := uint64(s.number)<<32 | uint64(s.call)
	root := uint64(s.root)<<32 | uint64(s.element)
	// A program calls much the same again and again, and a store costs more than three looks.
	if s.call != callBarrier && (r.root.Load() != root || r.part.Load() != s.part || r.kind.Load() != s.kind) {
		// Who reads the record meanwhile sees that it changes.
		r.call.Store(0)
		r.root.Store(root)
		r.part.Store(s.part)
		r.kind.Store(s.kind)
	}
	r.call.Store(word)
}

// A recordState is what is known of a call of a rank.
type recordState uint8

const (
	recordNone recordState = iota
	// recordHeld: which call it is.
	recordHeld
	// recordPassed: the rank has gone on so far since that this cannot be said any more.
	recordPassed
	// recordShrinks: the rank has not come to the call, and has called Shrink instead.
	recordShrinks
	// recordGivenUp: the rank has called Shrink, and does no more of the call than it has done before.
	recordGivenUp
	recordStates
)

// recordAt is what the owner has noted of the call of a number. It loads shrinks before the record: a rank that gives up Shrink stores 0
// there before it stores its next record.
func (l *ledger) recordAt(number uint32) (s signature, state recordState) {
	word := l.shrinks.Load()
	s, state = l.records[number%ledgerDepth].load(number)
	switch shrinks, from := uint32(word), uint32(word>>32); {
	case shrinks == uint32(recordShrinks) && state == recordNone:
		state = recordShrinks
	case shrinks == uint32(recordGivenUp) && int32(number-from) >= 0:
		state = recordGivenUp
	}
	return s, state
}

// load reads the record of the call of a number, if it holds that.
func (r *record) load(number uint32) (s signature, state recordState) {
	word := r.call.Load()
	s.call, s.number = uint32(word), uint32(word>>32)
	switch {
	case s.call == 0 || int32(s.number-number) < 0:
		return s, recordNone
	case s.number != number:
		return s, recordPassed
	}
	if s.call != callBarrier {
		root := r.root.Load()
		s.root, s.element, s.part, s.kind = uint32(root>>32), uint32(root), r.part.Load(), r.kind.Load()
	}
	if r.call.Load() != word {
		return s, recordNone
	}
	return s, recordHeld
}

// compare is an error if rank is known to have called something else than mine, and else says what is known of that call of
// the rank.
func (w *World) compare(op string, rank int, mine *signature) (state recordState, err error) {
	if !w.Acquainted(rank) {
		return recordNone, nil
	}
	s, state := w.recordOf(rank, mine.number)
	return w.examine(op, rank, &s, state, mine)
}

// examine is compare with what is known of the rank's call.
func (w *World) examine(op string, rank int, theirs *signature, state recordState, mine *signature) (recordState, error) {
	switch {
	case state == recordHeld && *theirs != *mine:
		return state, w.disagree(op, rank, theirs, mine)
	case state == recordShrinks && w.shrinking.over:
		// This rank has, too, and both may go on with this World.
		return recordNone, nil
	}
	return state, nil
}

// behind is the error of a call in which rank is to have a part that it has not had: by its state it has gone on, or shrinks.
func (w *World) behind(op string, rank int, mine *signature, state recordState) error {
	if state >= recordShrinks {
		// If it shrinks because another rank has failed, that is the error.
		if err := w.lost(op, mine.number); err != nil {
			return err
		}
		w.tell(verdict{number: mine.number, leaver: rank, shrinks: true})
		return w.shrunkBy(op, rank)
	}
	return w.condemn(op, mine.number, mine.number, fmt.Sprintf("collective %d: rank %d calls %s, in which rank %d has had no part and has gone on", mine.number, w.rank, callName(mine.call), rank))
}

// compareAll is compare with every rank, for those who wait long. It takes the
// lowest that disagrees, or shrinks.
func (w *World) compareAll(op string, mine *signature) (rank int, state recordState, err error) {
	records, states := w.askRecords(mine.number)
	for rank := range w.size {
		s, state := records[rank], states[rank]
		if w.Mapped(rank) && w.Acquainted(rank) {
			s, state = w.recordOf(rank, mine.number)
		}
		if state, err = w.examine(op, rank, &s, state, mine); err != nil || state >= recordShrinks {
			return rank, state, err
		}
	}
	return -1, recordNone, nil
}

// disagree tells all that rank has called theirs where this rank has called mine.
func (w *World) disagree(op string, rank int, theirs, mine *signature) error {
	return w.condemn(op, mine.number, min(theirs.number, mine.number), w.difference(rank, theirs, mine))
}

// condemn tells all what ranks disagree on from the call of a number on, and gives
// the error of this rank's call.
func (w *World) condemn(op string, number, from uint32, what string) error {
	w.tell(verdict{number: from, leaver: -1, text: what})
	if err := w.verdict(op, number); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w: %s", errtext.Call("world", op), ErrMismatch, what)
}

// unlike is the error of a call at which rank, or some rank if that is -1, is known
// to have another history: it looks for the first call in which they differ.
func (w *World) unlike(op string, rank int) error {
	last := w.calls.Load() + 1
	first, count := max(rank, 0), 1
	if rank < 0 {
		count = w.size
	}
	for other := first; other < first+count; other++ {
		for number := last - min(last, ledgerDepth) + 1; int32(last-number) >= 0; number++ {
			a, here := w.ledger.records[number%ledgerDepth].load(number)
			b, there := w.recordOf(other, number)
			if here == recordHeld && there == recordHeld && a != b {
				return w.disagree(op, other, &b, &a)
			}
		}
	}
	return w.condemn(op, last, last, fmt.Sprintf("rank %d has called other collectives than others before collective %d", w.rank, last))
}

// after is the history of calls with one more.
func (s *signature) after(history uint64) uint64 {
	for _, word := range [...]uint64{uint64(s.number)<<32 | uint64(s.call), uint64(s.root)<<32 | uint64(s.element), s.kind, s.part} {
		history = (history ^ word) * 0x9e3779b97f4a7c15
		history ^= history >> 29
	}
	return history
}

// difference names what two ranks have called, the lower one first.
func (w *World) difference(rank int, theirs, mine *signature) string {
	low, high := rank, w.rank
	a, b := theirs, mine
	if low > high {
		low, high, a, b = high, low, b, a
	}
	kind := func(rank int, s *signature) string { return w.kindName(rank, s) }
	at := fmt.Sprintf("collective %d", b.number)
	switch {
	case a.number != b.number:
		return fmt.Sprintf("rank %d is at collective %d, %s, rank %d at %d, %s", low, a.number, callName(a.call), high, b.number, callName(b.call))
	case a.call != b.call:
		return fmt.Sprintf("%s: rank %d calls %s, rank %d %s", at, low, callName(a.call), high, callName(b.call))
	case a.root != b.root:
		return fmt.Sprintf("%s, %s: rank %d has root %d, rank %d has %d", at, callName(a.call), low, a.root, high, b.root)
	case a.kind != b.kind || a.element != b.element:
		return fmt.Sprintf("%s, %s: rank %d has elements of type %s, rank %d of %s", at, callName(a.call), low, kind(low, a), high, kind(high, b))
	}
	size := uint64(max(a.element, 1))
	return fmt.Sprintf("%s, %s: rank %d has %s of %s, rank %d has %d", at, callName(a.call), low, errtext.Count(a.part/size, "element"), kind(low, a), high, b.part/size)
}

// kindName is what rank calls the element type of its call s.
func (w *World) kindName(rank int, s *signature) string {
	if !w.Mapped(rank) {
		if name := w.askKindName(rank, s.kind); name != "" {
			return name
		}
	} else if l, err := w.ledgerOf(rank); err == nil {
		if name := l.kindName(s.kind); name != "" {
			return name
		}
	}
	return fmt.Sprintf("%s, layout %#x", errtext.Count(s.element, "byte"), s.kind)
}

// lost is the error of the call of a number that cannot end well, because of a
// verdict, or because a rank has failed; nil while neither is known. Of a failure
// all are told: they may see this rank leave before they notice it themselves.
func (w *World) lost(op string, number uint32) error {
	if err := w.verdict(op, number); err != nil || w.FailureCount() == 0 {
		return err
	}
	w.report(number)
	return w.anyFailure(op)
}

// report tells all of the first failure.
func (w *World) report(number uint32) {
	rank, err := w.FirstFailure()
	if rank < 0 || w.reported.Swap(true) {
		return
	}
	w.tell(verdict{number: number, leaver: rank, text: reasonOf(errors.Unwrap(err))})
}

// hearOfFailure makes a failure that another rank has told of known here.
func (w *World) hearOfFailure() {
	if v := w.heardVerdict(w.ledger.number()); v != nil {
		v.acknowledge(w)
	}
}

func (v *verdict) acknowledge(w *World) {
	if v.failure() && v.leaver < w.size {
		w.reported.Store(true)
		w.roster.fail(v.leaver, errors.New(v.text))
	}
}

// gone tells all that rank has left, for which the call of a number waits.
func (w *World) gone(op string, number uint32, rank int) error {
	w.tell(verdict{number: number, leaver: rank})
	return w.LeftBy(op, rank)
}

// tell makes a verdict known to all. A rank that has failed or left hears nothing of that.
func (w *World) tell(v verdict) {
	w.ledger.judge(v)
	var strangers []int
	judge := func(rank int) {
		if l, err := w.ledgerOf(rank); err == nil && l.judge(v) {
			w.Ring(rank)
		}
	}
	for rank := range w.size {
		switch {
		case rank == w.rank || rank == v.leaver && !v.shrinks:
		case w.stranger(rank):
			strangers = append(strangers, rank)
		case w.Mapped(rank):
			judge(rank)
		default:
			// Those that wait for this rank have a link with it, and tell others.
			if l := w.links[rank].Load(); l != nil {
				l.tellVerdict(v)
			}
		}
	}
	for _, rank := range strangers {
		// One that is stopped does not answer. This rank does not leave before it has told them.
		w.aside.start(rank, func() { judge(rank) })
	}
}

// States of a ledger's verdict, beside the number of the call.
const (
	verdictNone uint64 = iota
	verdictWriting
	verdictReady
	// verdictShrinks is one that is ready, on a rank that shrinks.
	verdictShrinks
)

// judge stores a verdict, unless there is one that holds from as early on, and tells
// whether it did. A failure is why ranks shrink: beside one it stays, or becomes, the reason, from the earlier of both on.
func (l *ledger) judge(v verdict) bool {
	// A rank that dies while it writes leaves the state at that; its death is
	// what the others hear of then.
	for range 100_000 {
		state := l.verdict.Load()
		if state&3 == verdictWriting {
			runtime.Gosched()
			continue
		}
		number, later := v.number, state&3 >= verdictReady && int32(v.number-uint32(state>>32)) >= 0
		switch {
		case later && state&3 == verdictShrinks && v.failure():
			number = uint32(state >> 32)
		case later:
			return false
		}
		if l.verdict.CompareAndSwap(state, verdictWriting) {
			ready := verdictReady
			if stays := v.shrinks && state&3 == verdictReady && l.leaver.Load() != 0 && l.text[0].Load() != 0; !stays {
				if v.shrinks {
					ready = verdictShrinks
				}
				l.leaver.Store(uint64(v.leaver + 1))
				storeText(l.text[:], v.text)
			}
			l.verdict.Store(uint64(number)<<32 | ready)
			return true
		}
	}
	return false
}

// A verdict ends all calls from that of a number on.
type verdict struct {
	number uint32
	// leaver is the rank that has left, that shrinks the World instead, or that has failed if text says why; or it is -1, and text says
	// what ranks disagree on.
	leaver  int
	shrinks bool
	text    string
}

// failure reports whether it is of a rank that has failed.
func (v *verdict) failure() bool { return v.leaver >= 0 && v.text != "" && !v.shrinks }

// verdict is the error of the call of a number, nil while nobody knows of any.
func (w *World) verdict(op string, number uint32) error {
	v := w.judged.Load()
	if v == nil || v.shrinks {
		// A failure takes the place of a rank that shrinks.
		if heard := w.heardVerdict(number); heard != nil && (v == nil || !heard.shrinks) {
			v = heard
			w.judged.Store(v)
			v.acknowledge(w)
			// Whoever acts on a verdict first sees to it that all have it: or they
			// would take this rank for the one that is to blame.
			w.tell(*v)
		}
	}
	switch {
	case v == nil:
		return nil
	case v.leaver < 0 || v.leaver >= w.size:
		return fmt.Errorf("%s: %w: %s", errtext.Call("world", op), ErrMismatch, v.text)
	case v.shrinks && w.FailureCount() != 0:
		w.report(number)
		return w.anyFailure(op)
	case v.shrinks:
		return w.shrunkBy(op, v.leaver)
	case v.text != "":
		return w.peerError(op, v.leaver)
	}
	return w.LeftBy(op, v.leaver)
}

// number is that of the call from which on there is a verdict.
func (l *ledger) number() uint32 { return uint32(l.verdict.Load() >> 32) }

// heardVerdict is the verdict, if it holds for the call of a number. One that is not valid is replaced
// by one that says so: ranks disagree.
func (w *World) heardVerdict(number uint32) *verdict {
	v := w.ledger.heard(number)
	if v == nil || v.valid(w) {
		return v
	}
	says := "has failed or left"
	if v.shrinks {
		says = "has called Shrink"
	}
	return &verdict{number: v.number, leaver: -1, text: fmt.Sprintf("the memory of rank %d says that rank %d %s, which no rank tells it: it is damaged", w.rank, v.leaver, says)}
}

// valid reports whether a rank that keeps the rules may tell this one a verdict. It is of another rank, or of none; or it says that this
// one shrinks, which has called Shrink.
func (v *verdict) valid(w *World) bool {
	switch {
	case v.shrinks && v.text != "":
		return false
	case v.leaver == w.rank:
		return v.shrinks && w.shrinking.begun.Load()
	}
	return v.leaver < w.size && (v.leaver >= 0 || v.leaver == -1 && !v.shrinks)
}

// heardLooks is how often a verdict is read that changes meanwhile.
const heardLooks = 1000

// heard is the verdict, if it holds for the call of a number. One that does not keep still is none yet.
func (l *ledger) heard(number uint32) *verdict {
	for range heardLooks {
		state := l.verdict.Load()
		if state&3 < verdictReady || int32(number-uint32(state>>32)) < 0 {
			return nil
		}
		v := &verdict{uint32(state >> 32), int(l.leaver.Load()) - 1, state&3 == verdictShrinks, verdictText(loadText(l.text[:]))}
		if l.verdict.Load() == state {
			return v
		}
	}
	return nil
}

// verdictText returns the text of a verdict that another rank has written. An empty one stays so: it says that there is none.
func verdictText(text string) string {
	if text == "" {
		return ""
	}
	return cleanReason(text)
}

// mark gives the hash that stands for an element's layout.
func mark(layout string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(layout))
	return h.Sum64()
}

// maxVerdict is the longest text of a verdict, in bytes.
const maxVerdict = 300

// ledgerOf maps the ledger of rank.
func (w *World) ledgerOf(rank int) (*ledger, error) {
	if l := w.ledgers[rank].Load(); l != nil {
		return l, nil
	}
	block, err := w.blockOf(rank)
	if err != nil {
		return nil, err
	}
	if len(block) < blockBytes {
		return nil, errors.New("the block is too short")
	}
	l := ledgerOver(block[ledgerOffset:])
	w.ledgers[rank].Store(l)
	return l, nil
}

// kindName is the name of the element layout whose hash is kind, if it was the last.
func (l *ledger) kindName(kind uint64) string {
	if l.kind.Load() != kind {
		return ""
	}
	name := loadText(l.name[:])
	if l.kind.Load() != kind {
		return ""
	}
	return name
}

// recordOf is the call of a number of a rank, if its ledger has it.
func (w *World) recordOf(rank int, number uint32) (signature, recordState) {
	if !w.Mapped(rank) {
		return w.askRecord(rank, number)
	}
	l, err := w.ledgerOf(rank)
	if err != nil {
		return signature{}, recordNone
	}
	return l.recordAt(number)
}
