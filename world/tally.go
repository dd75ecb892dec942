package world

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
)

// A tally is what ranks tell each other in a Meeting of those that they have sent something
// to, so that each knows, when all have met, how many will have sent to it.
//
// The rank at distance d after this one is counted at index d. Each count travels to the
// rank that it is about by the bits of its distance, from the lowest: in round k of the
// dissemination a rank tells the one 2^k after it the counts whose lowest bit is k, as
// counts at distances 2^k less, to which that one adds its own. Each way is one of its own,
// so that nothing is counted twice, whatever the number of ranks.
//
// What comes is of this number or of the next, which others may have begun: a parity has its
// own counts. Those of a number are clear before any other rank can come to the number after
// the next.
type tally struct {
	// A count of coming belongs to progress until this rank has heard of the round that it
	// came before. some tells that a rank has sent anything to anybody.
	coming [2][]uint32
	some   [2]atomic.Bool
	// number is the last that this rank has begun, of which it has told told rounds, and
	// of the round at hand parts. finished tells that it has come to its end, with result
	// and any.
	number      atomic.Uint32
	told, parts int
	finished    bool
	result      int
	any         bool
	text        []byte
	// leaver is 1 + a rank that has left the job, and above 32 bits the last number that it
	// had begun: the lowest of those of which this rank was told. It is 0 if there is none.
	leaver atomic.Uint64
}

// countBytes is the length of a count: its index and how much it is, of 32 bits each.
const countBytes = 8

// Tally is Meet in which each rank tells of the ranks that it has sent something to, and
// returns how many have sent something to this one, and whether any rank has to any. A rank
// that has called Tally of a meeting once calls no Meet of it. When ctx has ended it, the
// same call goes on.
func (m *Meeting) Tally(ctx context.Context, op string, number uint32, sent func(rank int) bool) (arrivals int, any bool, err error) {
	t, w := &m.tally, m.world
	if t.number.Load() != number {
		t.number.Store(number)
		t.told, t.parts, t.finished = 0, 0, false
	}
	if t.finished {
		return t.result, t.any, nil
	}
	parity, own := number&1, false
	for rank := range w.size {
		own = own || sent(rank)
	}
	for k, distance := 0, 1; distance < w.size; k, distance = k+1, 2*distance {
		if k >= t.told {
			if err := m.tellCounts(ctx, op, k, sent, own); err != nil {
				return 0, false, err
			}
			t.told, t.parts = k+1, 0
		}
		if heard := m.own.round(k); !reached(heard, number) {
			from := (w.rank - distance + w.size) % w.size
			if err := m.hear(ctx, op, heard, number, from); err != nil {
				return 0, false, err
			}
		}
	}
	if w.size > 1 {
		t.result, t.any = int(t.coming[parity][0]), own || t.some[parity].Load()
		clear(t.coming[parity])
		t.some[parity].Store(false)
	}
	t.finished = true
	return t.result, t.any, nil
}

// tellCounts tells the rank that is to hear of round k of this rank what it has to know.
func (m *Meeting) tellCounts(ctx context.Context, op string, k int, sent func(rank int) bool, own bool) error {
	t, w := &m.tally, m.world
	distance, number := 1<<k, t.number.Load()
	to := (w.rank + distance) % w.size
	l, err := w.Link(to)
	if err != nil {
		return m.unreached(op, to, err)
	}
	parity := number & 1
	coming := t.coming[parity]
	t.text = t.text[:0]
	part, most := 0, l.MaxPayload()/countBytes*countBytes
	tell := func(kind uint8) error {
		if part++; part <= t.parts {
			t.text = t.text[:0]
			return nil
		}
		some := uint64(0)
		if own || t.some[parity].Load() {
			some = 1
		}
		err := l.TellWithin(ctx, &Message{Kind: kind, Service: m.number, A: uint8(k), X: uint64(number), Z: some}, t.text)
		if err == nil {
			t.parts = part
		}
		t.text = t.text[:0]
		return err
	}
	for d := distance; d < w.size; d += 2 * distance {
		n := coming[d]
		if sent((w.rank + d) % w.size) {
			n++
		}
		if n == 0 {
			continue
		}
		if len(t.text) == most {
			if err := tell(kindCounts); err != nil {
				return m.unreached(op, to, err)
			}
		}
		t.text = binary.LittleEndian.AppendUint32(t.text, uint32(d-distance))
		t.text = binary.LittleEndian.AppendUint32(t.text, n)
	}
	if err := tell(kindRound); err != nil {
		return m.unreached(op, to, err)
	}
	l.Post()
	return nil
}

// count adds what a rank tells in round k.
func (m *Meeting) count(message *Message, payload []byte) error {
	t, size, k := &m.tally, m.world.size, int(message.A)
	if len(payload)%countBytes != 0 {
		return fmt.Errorf("%w: %d bytes of counts", ErrMessage, len(payload))
	}
	parity := uint32(message.X) & 1
	if message.Z != 0 {
		t.some[parity].Store(true)
	}
	coming := t.coming[parity]
	for ; len(payload) > 0; payload = payload[countBytes:] {
		d, n := binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint32(payload[4:])
		// It has come by 2^k, and lower bits of its way were gone before.
		if uint64(d)+1<<k >= uint64(size) || d&(2<<k-1) != 0 || n > uint32(size) || coming[d]+n > uint32(size) {
			return fmt.Errorf("%w: a count of %d for distance %d in round %d", ErrMessage, n, d, k)
		}
		coming[d] += n
	}
	return nil
}

// begun is what a rank that leaves tells of the tallies that it has begun.
func (w *World) begun() (text []byte) {
	for number, m := range w.meetings {
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
		m, number := w.meetings[binary.LittleEndian.Uint32(text)], binary.LittleEndian.Uint32(text[4:])
		if m == nil {
			continue
		}
		if before := m.tally.leaver.Load(); before == 0 || int32(number-uint32(before>>32)) < 0 {
			m.tally.leaver.Store(uint64(number)<<32 | uint64(rank+1))
		}
	}
}

// absent is a rank that has left before it began a number, if this one has heard of one.
func (t *tally) absent(number uint32) (rank int, ok bool) {
	leaver := t.leaver.Load()
	return int(uint32(leaver)) - 1, leaver != 0 && int32(uint32(leaver>>32)-number) < 0
}
