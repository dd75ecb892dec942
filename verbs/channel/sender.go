package channel

import (
	"encoding/binary"

	"github.com/onesided/rma/internal/raceorder"
)

// sender is the sending half of a channel.
type sender struct {
	traits Traits
	// config is the shape of the peer's ring, memory what was written to it. The same place has the same bytes in both,
	// except for differing and the first words of buffers, which are zero at the peer. memory is nil before the peer
	// has offered its ring.
	config Config
	memory []byte
	// next is the buffer where the next message begins. placed is the number of bytes of its payload that Place has
	// returned.
	next, placed int
	// sequence is the number of the next message.
	sequence uint32
	// completed is the number of buffers whose writes have completed, if the card resends.
	completed uint32
	// lastStamp is the stamp of the last message, without its number. left is the number of requests to leave the ring
	// that the peer had sent when this side last said that it does not use the ring any more.
	lastStamp stamp
	left      uint32
	// differing is, for each buffer, the part of memory that may differ from the peer's: what a gather list has written
	// from elsewhere. It is nil before the first such message.
	differing []part
	// pipe replaces the ring. It is nil if the peer has offered none.
	pipe *outlet
}

// A part is a range of a buffer, in whole words. It is empty if its ends are equal.
type part struct{ from, to uint32 }

// A Write describes what to write into the peer's ring for one message.
type Write struct {
	// Offset and Length are the first write, in the ring and in the sender's memory for it. If Flagged is set, a second
	// write follows with the word at Flag.
	Offset, Length int
	Flagged        bool
	Flag           int
	// Gap bytes at GapAt, relative to Offset, are not from that memory but from the gathered payload.
	GapAt, Gap int
}

// FlagBytes is the length of the second write.
const FlagBytes = wordBytes

// errSecondRing is the error of a second offer of a ring.
var errSecondRing = &ProtocolError{"the number of rings that the peer has offered", 2, 1, 1}

// Lend gives the sender half the memory from which it writes to the ring that the peer has offered. It is as long as
// that ring, zeroed, and belongs to the channel from now on.
func (c *Channel) Lend(config Config, memory []byte) error {
	if err := checkMemory(&config, memory); err != nil {
		return err
	}
	if c.out.memory != nil {
		return errSecondRing
	}
	c.out.config, c.out.memory = config, memory
	return nil
}

// room reports whether the ring has room for a message of a span now.
func (c *Channel) room(span int) bool {
	o := &c.out
	peer := stamp(c.peerStamp.Load())
	if peer&polledBit == 0 {
		return false
	}
	used := c.used.Load()
	taken, _ := o.config.taken(o.next, span)
	return since(used, peer.credits())+taken <= o.config.Buffers &&
		(!o.traits.Resends || since(used, o.completed)+taken <= o.config.Buffers)
}

// Place returns n bytes of memory for the payload of the next message. It returns nil if the message cannot use the
// ring now: there is no credit, it is too long, or the peer does not poll. Called again before Seal, for more bytes, it
// returns the same memory with its contents. All that is stored there must be sealed.
func (c *Channel) Place(n int) []byte {
	o := &c.out
	if o.memory == nil || n < 0 || n > o.config.MaxMessage || !c.room(o.config.span(n)) {
		return nil
	}
	o.placed = max(o.placed, n)
	at := o.next*o.config.BufferBytes + headBytes
	return o.memory[at : at+n : at+n]
}

// Seal makes a message of the first n bytes of the last Place, and returns what to write for it before anything else.
// The memory must not change before the peer has taken the message. If the card resends, it must not change before
// Completed covers it.
func (c *Channel) Seal(n int) Write { return c.seal(n, 0) }

// SealGathered is Seal for a message of n bytes, the last gathered of which are not in the memory of Place but
// elsewhere, in a gather list.
func (c *Channel) SealGathered(n, gathered int) Write { return c.seal(n, gathered) }

func (c *Channel) seal(n, gathered int) Write {
	raceorder.Release()
	o := &c.out
	first := o.next * o.config.BufferBytes
	tail := first + headBytes + padded(n)

	flag := flagWhole
	if o.traits.Ordered && tail >= first+headBytes+padded(o.placed) {
		if old, known := o.old(tail); known && old == headWord(n, flagOne) {
			flag = flagOther
		} else if known {
			flag = flagOne
		}
	}
	head := headWord(n, flag)
	binary.LittleEndian.PutUint64(o.memory[first:], head)
	binary.LittleEndian.PutUint64(o.memory[first+wordBytes:], uint64(c.stamp(true)))
	w := Write{Offset: first, Length: tail - first}
	if o.traits.Ordered {
		// Also if there is no tail to wait for: the word at its place is known from then on.
		binary.LittleEndian.PutUint64(o.memory[tail:], head)
		w.Length += wordBytes
	}
	if flag == flagWhole {
		w = Write{Offset: first + wordBytes, Length: w.Length - wordBytes, Flagged: true, Flag: first}
	}
	if gathered > 0 {
		w.Gap, w.GapAt = gathered, first+headBytes+n-gathered-w.Offset
	}
	if o.traits.Ordered && (gathered > 0 || o.placed > n || o.differing != nil) {
		o.markDiffering(first, n, gathered, w.Offset+w.Length)
	}
	span := o.config.span(n)
	taken, next := o.config.taken(o.next, span)
	o.next, o.placed = next, 0
	c.used.Store((c.used.Load() + uint32(taken)) & creditMask)
	return w
}

// old returns the peer's word at an offset, if it is known. The peer has cleared the first words of its buffers.
func (o *sender) old(at int) (value uint64, known bool) {
	buffer, within := at/o.config.BufferBytes, uint32(at%o.config.BufferBytes)
	if within == 0 && buffer < o.config.Buffers {
		return 0, true
	}
	if o.differing != nil {
		if b := o.differing[buffer]; within >= b.from && within < b.to {
			return 0, false
		}
	}
	return binary.LittleEndian.Uint64(o.memory[at:]), true
}

// markDiffering records what may differ from the peer's memory after a message at first was written until end: the
// gathered ones of its n bytes, and what was stored for it but is not in it. A known difference that was overwritten is
// gone.
func (o *sender) markDiffering(first, n, gathered, end int) {
	size := o.config.BufferBytes
	if o.differing == nil {
		o.differing = make([]part, len(o.memory)/size)
	}
	for buffer := first / size; buffer*size < end; buffer++ {
		if b := &o.differing[buffer]; (buffer+1)*size <= end {
			*b = part{}
		} else if b.from = max(b.from, uint32(end-buffer*size)); b.from >= b.to {
			*b = part{}
		}
	}
	payload := first + headBytes
	if gathered > 0 {
		o.addDiffering((payload+n-gathered)&^(wordBytes-1), payload+padded(n))
	}
	o.addDiffering(end, payload+padded(o.placed))
}

// addDiffering records that memory may differ in a range of offsets.
func (o *sender) addDiffering(from, to int) {
	size := o.config.BufferBytes
	for from < to {
		buffer := from / size
		until := min(to, (buffer+1)*size)
		added := part{uint32(from - buffer*size), uint32(until - buffer*size)}
		if b := &o.differing[buffer]; b.from == b.to {
			*b = added
		} else {
			*b = part{min(b.from, added.from), max(b.to, added.to)}
		}
		from = until
	}
}

// stamp numbers a message and adds what the peer has to know. by says whether the message uses the ring or pipe; new
// stamps of the peer since the check for room do not matter.
func (c *Channel) stamp(by bool) stamp {
	o := &c.out
	peer := stamp(c.peerStamp.Load())
	polled := peer&polledBit != 0 && (o.memory != nil || o.pipe != nil)
	if !by || polled {
		o.left = peer.sequence()
	}
	return c.nextStamp(by || polled)
}

// nextStamp returns the stamp of the next message, and counts that message. uses is the stamp's uses bit.
func (c *Channel) nextStamp(uses bool) stamp {
	o, s := &c.out, stamp(c.owed.Load())
	if uses {
		s |= usesBit
	}
	o.lastStamp = s
	s |= stamp(o.sequence)
	o.sequence++
	return s
}

// StampEager writes the stamp of an eager message, its first StampBytes. The message must then be sent before anything
// else.
func (c *Channel) StampEager(into []byte) {
	raceorder.Release()
	binary.LittleEndian.PutUint64(into[:StampBytes], uint64(c.stamp(false)))
}

// NeedsStamp reports whether a message must be sent although there is no payload. There are three reasons:
//
//   - At least half of the ring is owed to the peer.
//   - The peer does not know yet whether its ring is polled.
//   - The peer waits to learn that this side does not use the peer's ring any more.
//
// An eager message without payload carries that. So does a message by ring, except for the last reason.
func (c *Channel) NeedsStamp() bool {
	owed, last, peer := stamp(c.owed.Load()), c.out.lastStamp, stamp(c.peerStamp.Load())
	credits := since(owed.credits(), last.credits())
	return (owed^last)&polledBit != 0 || peer.sequence() != c.out.left || credits > 0 && 2*credits >= int(c.buffers.Load())
}

// Mark returns the number of buffers of the peer's ring ever used.
func (c *Channel) Mark() uint32 { return c.used.Load() }

// Completed records that everything written until a mark has completed. If the card resends, a buffer is not reused
// before.
func (c *Channel) Completed(mark uint32) {
	if since(mark, c.out.completed) <= since(c.used.Load(), c.out.completed) {
		c.out.completed = mark
	}
}
