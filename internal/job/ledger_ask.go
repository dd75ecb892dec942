package job

import (
	"bytes"
	"context"
	"encoding/binary"
	"time"
)

// A rank that does not map a ledger asks for what it would look at there.

// recordBytes is an encoded record: its state, its signature, if it is held, and the plight of its rank.
const (
	recordBytes = plightAt + 8
	plightAt    = 1 + 32
)

// nameBytes is a layout's name, ended by zeros.
const nameBytes = 8 * len(ledger{}.name)

// askRecord asks for the call of a number.
func (w *World) askRecord(rank int, number uint32) (s signature, state recordState) {
	var answer [recordBytes]byte
	if !w.ask(rank, &Message{Kind: kindRecord, X: uint64(number)}, answer[:]) {
		return s, recordNone
	}
	return decodeRecord(answer[:], number)
}

// askPlight asks for what a rank has slept long in.
func (w *World) askPlight(rank int) plight {
	var answer [recordBytes]byte
	if !w.ask(rank, &Message{Kind: kindRecord}, answer[:]) {
		return plightOver(0)
	}
	return plightOver(binary.LittleEndian.Uint64(answer[plightAt:]))
}

// askRecords asks all that this rank does not map for the call of a number. Of those that do not answer nothing is known.
func (w *World) askRecords(number uint32) (records []signature, states []recordState) {
	ctx := w.asking(longestAsk)
	asked := make([]*inquiry, w.size)
	for rank := range w.size {
		if w.Mapped(rank) {
			continue
		}
		if q, ok := w.inquire(ctx, rank, &Message{Kind: kindRecord, X: uint64(number)}, make([]byte, recordBytes)); ok {
			asked[rank] = q
		}
	}
	records, states = make([]signature, w.size), make([]recordState, w.size)
	for rank, q := range asked {
		if q != nil && q.answered(ctx) {
			records[rank], states[rank] = decodeRecord(q.answer, number)
		}
	}
	return records, states
}

func decodeRecord(answer []byte, number uint32) (s signature, state recordState) {
	if state = recordState(answer[0]); state >= recordStates {
		state = recordNone
	}
	return signature{
		call:    binary.LittleEndian.Uint32(answer[1:]),
		number:  number,
		root:    binary.LittleEndian.Uint32(answer[5:]),
		element: binary.LittleEndian.Uint32(answer[9:]),
		kind:    binary.LittleEndian.Uint64(answer[13:]),
		part:    binary.LittleEndian.Uint64(answer[21:]),
	}, state
}

// askKindName asks for the name of an element layout.
func (w *World) askKindName(rank int, kind uint64) string {
	var answer [nameBytes]byte
	if !w.ask(rank, &Message{Kind: kindName, X: kind}, answer[:]) {
		return ""
	}
	name, _, _ := bytes.Cut(answer[:], []byte{0})
	return string(name)
}

// longestAsk bounds how long a wait is held up by what it asks.
const longestAsk = 200 * time.Millisecond

// An inquiry is a question that is on its way.
type inquiry struct {
	link   *Link
	mark   Mark
	answer []byte
}

// inquire asks a rank. Who refuses leaves answer as it is.
func (w *World) inquire(ctx context.Context, rank int, m *Message, answer []byte) (*inquiry, bool) {
	l, err := w.Link(rank)
	if err != nil || l.Ask(ctx, m, nil, answer) != nil {
		return nil, false
	}
	mark := l.Mark()
	return &inquiry{l, mark, answer}, l.settle(mark) == nil
}

// answered waits for the answer, and tells whether it has come.
func (q *inquiry) answered(ctx context.Context) bool {
	ok, _ := q.link.await(ctx, q.mark.sequence, q.mark.asked)
	return ok
}

// ask asks a rank, and tells whether it has answered.
func (w *World) ask(rank int, m *Message, answer []byte) bool {
	ctx := w.asking(longestAsk)
	q, ok := w.inquire(ctx, rank, m, answer)
	return ok && q.answered(ctx)
}

// answerRecord answers askRecord.
func (w *World) answerRecord(l *Link, number uint32) {
	var answer [recordBytes]byte
	s, state := w.ledger.recordAt(number)
	answer[0] = byte(state)
	if state == recordHeld {
		binary.LittleEndian.PutUint32(answer[1:], s.call)
		binary.LittleEndian.PutUint32(answer[5:], s.root)
		binary.LittleEndian.PutUint32(answer[9:], s.element)
		binary.LittleEndian.PutUint64(answer[13:], s.kind)
		binary.LittleEndian.PutUint64(answer[21:], s.part)
	}
	binary.LittleEndian.PutUint64(answer[plightAt:], w.ledger.plight.Load())
	l.Answer(answer[:])
}

// answerKindName answers askKindName.
func (w *World) answerKindName(l *Link, kind uint64) {
	var answer [nameBytes]byte
	copy(answer[:], w.ledger.kindName(kind))
	l.Answer(answer[:])
}
