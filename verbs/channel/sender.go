package channel

import (
	"encoding/binary"

	"github.com/onesided/rma/internal/raceorder"
)

// sender is the half of a channel that sends.
type sender struct {
	traits Traits
	// config is the shape of the peer's ring, memory what was written to it: what is at the
	// same place in both is the same, but for what belies and the first words of buffers,
	// which are zero at the peer's. It is nil before the peer has offered its ring.
	config Config
	memory []byte
	// next is the buffer where the next message begins, placed how many bytes of its payload
	// were given to the user.
	next, placed int
	// sequence numbers the next message.
	sequence uint32
	// completed is how many buffers' writes have completed, if the card resends.
	completed uint32
	// told is what the peer was told last, left how often it had told to leave its ring when
	// it was told that it is not used any more.
	told stamp
	left uint32
	// belies is, for each buffer, the part of memory that may differ from the peer's: what a
	// gather list has written from elsewhere. It is nil before there was one.
	belies []part
	// pipe is in place of a ring, nil if the peer has offered none.
	pipe *outlet
}

// A part of a buffer, of whole words. It is empty if its ends are the same.
type part struct{ from, to uint32 }

// A Write says what goes into the peer's ring for one message.
type Write struct {
	// Offset and Length of what goes by one write, in the ring and in the memory that is
	// like it. If Flagged, the word at Flag goes by a second write, behind the first.
	Offset, Length int
	Flagged        bool
	Flag           int
	// Gap bytes at GapAt, from Offset, are not of that memory but the payload that is
	// gathered.
	GapAt, Gap int
}

// FlagBytes is the length of what goes by the second write.
const FlagBytes = wordBytes

// errSecondRing is an offer of a ring behind another.
var errSecondRing = &ProtocolError{"the number of rings that the peer has offered", 2, 1, 1}

// Lend gives the sender half the memory for what it writes to the ring that the peer has
// offered: as long as that ring, zeroed, and the channel's from now on.
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
	heard := stamp(c.heard.Load())
	if heard&polledBit == 0 {
		return false
	}
	used := c.used.Load()
	taken, _ := o.config.taken(o.next, span)
	return since(used, heard.credits())+taken <= o.config.Buffers &&
		(!o.traits.Resends || since(used, o.completed)+taken <= o.config.Buffers)
}

// Place is where the payload of the next message is to be stored, n bytes of it, nil if it
// cannot go by the ring now: there is no credit, it is too long, or the peer does not poll.
// Called again before Seal, for more, it gives the same memory with what was stored. All
// that is stored there must be sealed.
func (c *Channel) Place(n int) []byte {
	o := &c.out
	if o.memory == nil || n < 0 || n > o.config.MaxMessage || !c.room(o.config.span(n)) {
		return nil
	}
	o.placed = max(o.placed, n)
	at := o.next*o.config.BufferBytes + headBytes
	return o.memory[at : at+n : at+n]
}

// Seal makes a message of the first n bytes that Place gave last, and says what is to be
// written for it, before anything else is. The memory is not changed before the peer has
// taken the message, nor, if the card resends, before Completed tells of it.
func (c *Channel) Seal(n int) Write { return c.seal(n, 0) }

// SealGathered is Seal for a message of n bytes, of which the last gathered ones are not
// where Place gave room for them, but elsewhere: in a gather list.
func (c *Channel) SealGathered(n, gathered int) Write { return c.seal(n, gathered) }

func (c *Channel) seal(n, gathered int) Write {
	raceorder.BeforeTelling()
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
		// Also where it tells nothing: what is at its place is known from then on.
		binary.LittleEndian.PutUint64(o.memory[tail:], head)
		w.Length += wordBytes
	}
	if flag == flagWhole {
		w = Write{Offset: first + wordBytes, Length: w.Length - wordBytes, Flagged: true, Flag: first}
	}
	if gathered > 0 {
		w.Gap, w.GapAt = gathered, first+headBytes+n-gathered-w.Offset
	}
	if o.traits.Ordered && (gathered > 0 || o.placed > n || o.belies != nil) {
		o.belie(first, n, gathered, w.Offset+w.Length)
	}
	span := o.config.span(n)
	taken, next := o.config.taken(o.next, span)
	o.next, o.placed = next, 0
	c.used.Store((c.used.Load() + uint32(taken)) & creditMask)
	return w
}

// old is the word that the peer has at an offset, if that is known. The first words of the
// ring's buffers it has cleared.
func (o *sender) old(at int) (value uint64, known bool) {
	buffer, within := at/o.config.BufferBytes, uint32(at%o.config.BufferBytes)
	if within == 0 && buffer < o.config.Buffers {
		return 0, true
	}
	if o.belies != nil {
		if b := o.belies[buffer]; within >= b.from && within < b.to {
			return 0, false
		}
	}
	return binary.LittleEndian.Uint64(o.memory[at:]), true
}

// belie notes what of memory may differ from the peer's, now that a message at first was
// written up to end: of its n bytes those that were gathered, and what was stored for it and
// is not in it. What was known to differ and was written over does not any more.
func (o *sender) belie(first, n, gathered, end int) {
	size := o.config.BufferBytes
	if o.belies == nil {
		o.belies = make([]part, len(o.memory)/size)
	}
	for buffer := first / size; buffer*size < end; buffer++ {
		if b := &o.belies[buffer]; (buffer+1)*size <= end {
			*b = part{}
		} else if b.from = max(b.from, uint32(end-buffer*size)); b.from >= b.to {
			*b = part{}
		}
	}
	payload := first + headBytes
	if gathered > 0 {
		o.differ((payload+n-gathered)&^(wordBytes-1), payload+padded(n))
	}
	o.differ(end, payload+padded(o.placed))
}

// differ notes that memory may differ from one offset to another.
func (o *sender) differ(from, to int) {
	size := o.config.BufferBytes
	for from < to {
		buffer := from / size
		until := min(to, (buffer+1)*size)
		added := part{uint32(from - buffer*size), uint32(until - buffer*size)}
		if b := &o.belies[buffer]; b.from == b.to {
			*b = added
		} else {
			*b = part{min(b.from, added.from), max(b.to, added.to)}
		}
		from = until
	}
}

// stamp numbers a message and tells the peer what it is to be told. by says whether it goes
// by ring or pipe, whatever has been heard since there was room.
func (c *Channel) stamp(by bool) stamp {
	o := &c.out
	heard := stamp(c.heard.Load())
	polled := heard&polledBit != 0 && (o.memory != nil || o.pipe != nil)
	if !by || polled {
		o.left = heard.sequence()
	}
	return c.told(by || polled)
}

// told is stamp but for what has been heard: uses says what the stamp tells of that.
func (c *Channel) told(uses bool) stamp {
	o, s := &c.out, stamp(c.tells.Load())
	if uses {
		s |= usesBit
	}
	o.told = s
	s |= stamp(o.sequence)
	o.sequence++
	return s
}

// StampLetter writes the stamp of a letter, the first StampBytes of one, which is then to be
// sent before anything else is.
func (c *Channel) StampLetter(into []byte) {
	raceorder.BeforeTelling()
	binary.LittleEndian.PutUint64(into[:StampBytes], uint64(c.stamp(false)))
}

// NeedsTelling reports whether the peer has to be told what the next message would tell it,
// though there is none: at least half of the ring is owed to it, it is to be told that its
// ring is polled now or is not any more, or waits to be told that this side uses its own no
// more. A letter without payload tells it; so does a message by ring, but for the last.
func (c *Channel) NeedsTelling() bool {
	tells, told, heard := stamp(c.tells.Load()), c.out.told, stamp(c.heard.Load())
	owed := since(tells.credits(), told.credits())
	return (tells^told)&polledBit != 0 || heard.sequence() != c.out.left || owed > 0 && 2*owed >= int(c.buffers.Load())
}

// Mark is how many buffers of the peer's ring were used in all.
func (c *Channel) Mark() uint32 { return c.used.Load() }

// Completed tells that what was written up to a mark has completed: if the card resends it
// is not used again before.
func (c *Channel) Completed(mark uint32) {
	if since(mark, c.out.completed) <= since(c.used.Load(), c.out.completed) {
		c.out.completed = mark
	}
}
