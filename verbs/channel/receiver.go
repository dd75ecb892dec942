package channel

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/onesided/rma/internal/raceorder"
)

// receiver is the receiving half of a channel.
type receiver struct {
	// head is the first word of the buffer where the next message begins. next is the number of that buffer. The ring
	// is nil before Own.
	head   *atomic.Uint64
	next   int
	config Config
	memory []byte
	// expected is the number of the next message, by ring or eager.
	expected uint32
	// taken counts the buffers of taken messages, as credits do.
	taken uint32
	// tail is the next buffer to be credited. freed has, for each buffer where a freed message began, the message's
	// span.
	tail  int
	freed []uint16
	// listens: the peer may write to the ring, because it has not yet said that it has left.
	listens bool
	// watched is the polling set's look at the ring or pipe, nil if there is none.
	watched *look
	// pipe replaces the ring, nil if there is none.
	pipe *inlet
	err  error
}

// A Message lies in the ring until it is freed. Its payload must not be written to, because the sender relies on what
// is there. A faulty peer can change it meanwhile.
type Message struct {
	Payload []byte
	// buffer and span are small, so that a Message is passed in registers.
	buffer, span int32
}

// Own gives the receiver half the memory of its ring, zeroed, which the peer can write.
func (c *Channel) Own(config Config, memory []byte) error {
	if err := checkMemory(&config, memory); err != nil {
		return err
	}
	c.in.config, c.in.memory, c.in.freed = config, memory, make([]uint16, config.Buffers)
	c.in.head = word(memory, 0)
	c.buffers.Store(int32(config.Buffers))
	return nil
}

// Owns reports whether there is a ring.
func (c *Channel) Owns() bool { return c.in.memory != nil }

// SetPolled sets whether this side polls its ring. The next stamp tells the peer.
func (c *Channel) SetPolled(polled bool) {
	owed := stamp(c.owed.Load()) &^ polledBit
	if polled {
		owed |= polledBit
		c.in.listens = true
	}
	c.owed.Store(uint64(owed))
}

// Polled returns the last value of SetPolled.
func (c *Channel) Polled() bool { return stamp(c.owed.Load())&polledBit != 0 }

// Draining reports whether the ring has left the set while the peer may still write to it. It must be polled until the
// peer has said that it has left it.
func (c *Channel) Draining() bool { return c.in.listens && !c.Polled() }

// Poll takes the next message from the ring if it is complete. A message stays there until the earlier eager messages
// have been taken. Messages without payload are taken and not returned. An error is final.
func (c *Channel) Poll() (m Message, some bool, err error) {
	for c.in.head != nil && c.in.head.Load() != 0 && c.in.err == nil {
		if m, some = c.take(); !some || len(m.Payload) > 0 {
			return m, some, c.in.err
		}
		c.Free(m)
	}
	return Message{}, false, c.in.err
}

// TakeStamps takes the messages without payload that come next in the ring, for the credits in their stamps. A sender
// without credit calls it when it cannot take messages.
func (c *Channel) TakeStamps() error {
	for c.in.head != nil && c.in.head.Load() != 0 && c.in.err == nil {
		if length, ok := c.in.complete(); !ok || length > 0 {
			break
		}
		m, some := c.take()
		if !some {
			break
		}
		c.Free(m)
	}
	return c.in.err
}

// take takes the next message. Each word is checked as it was loaded, whatever the peer stores there meanwhile.
func (c *Channel) take() (m Message, some bool) {
	in := &c.in
	length, ok := in.complete()
	if !ok {
		return m, false
	}
	raceorder.Acquire()
	first := in.next * in.config.BufferBytes
	s := stamp(number(word(in.memory, first+wordBytes).Load()))
	if s.sequence() != in.expected {
		if ahead := int32(s.sequence() - in.expected); ahead < 0 {
			in.fail("the number of a message in the ring", uint64(s.sequence()), uint64(in.expected), uint64(in.expected)+1<<31-1)
		}
		return m, false
	}
	if s&usesBit == 0 {
		in.fail("that the ring is used, said in the ring,", 0, 1, 1)
		return m, false
	}
	span := in.config.span(length)
	m.buffer, m.span = int32(in.next), int32(span)
	taken, next := in.config.taken(in.next, span)
	if unfreed := since(in.taken+uint32(taken), stamp(c.owed.Load()).credits()); unfreed > in.config.Buffers {
		in.fail("the number of buffers in use, without credit,", uint64(unfreed), 0, uint64(in.config.Buffers))
		return m, false
	}
	if !c.takeStamp(s) {
		return m, false
	}
	in.taken += uint32(taken)
	// When all buffers are taken the next message begins here again.
	in.head.Store(0)
	payload := first + headBytes
	m.Payload = in.memory[payload : payload+length : payload+length]
	in.next = next
	in.head = word(in.memory, in.next*in.config.BufferBytes)
	if in.watched != nil {
		in.watched.word = in.head
	}
	return m, true
}

// complete returns the length of the payload of the message at the head, if all of it has arrived.
func (in *receiver) complete() (length int, ok bool) {
	head := number(in.head.Load())
	flag := head >> flagShift
	if flag == 0 {
		return 0, false
	}
	if flag > flagWhole {
		in.fail("the flag of a message", flag, flagOne, flagWhole)
		return 0, false
	}
	if size := head &^ (flag << flagShift); size > uint64(in.config.MaxMessage) {
		in.fail("the length of a message", size, 0, uint64(in.config.MaxMessage))
		return 0, false
	}
	length = int(head & (1<<lengthBits - 1))
	tail := in.next*in.config.BufferBytes + headBytes + padded(length)
	return length, flag == flagWhole || number(word(in.memory, tail).Load()) == head
}

// takeStamp processes the stamp of the next message, and reports whether it is valid.
func (c *Channel) takeStamp(s stamp) bool {
	peer := stamp(c.peerStamp.Load())
	uncredited := since(c.used.Load(), peer.credits())
	if more := since(s.credits(), peer.credits()); more > uncredited {
		c.in.fail("the number of buffers that are credited", uint64(more), 0, uint64(uncredited))
		return false
	}
	c.in.expected++
	if s&usesBit == 0 && !c.Polled() {
		c.in.listens = false
	}
	leaves := peer.sequence()
	if peer&polledBit != 0 && s&polledBit == 0 {
		leaves++
	}
	c.peerStamp.Store(uint64(s&polledBit | stamp(s.credits())<<creditShift | stamp(leaves)))
	return true
}

// TakeEager processes the stamp with which an eager message begins, and reports whether it is the next message. If not,
// the next one is in the ring, where Poll takes it. An error is final.
func (c *Channel) TakeEager(message []byte) (next bool, err error) {
	in := &c.in
	if in.err != nil {
		return false, in.err
	}
	if len(message) < StampBytes {
		return false, in.fail("the length of an eager message", uint64(len(message)), StampBytes, 1<<lengthBits-1)
	}
	s := stamp(binary.LittleEndian.Uint64(message))
	if s.sequence() == in.expected {
		next = c.takeStamp(s)
		return next, in.err
	}
	// What was written before the eager message was sent is there.
	if in.pipe != nil {
		if early, err := in.pipe.holds(in.expected); early || err != nil {
			return false, in.broken(err)
		}
	}
	if in.head != nil {
		if _, ok := in.complete(); ok {
			first := in.next * in.config.BufferBytes
			if stamp(number(word(in.memory, first+wordBytes).Load())).sequence() == in.expected {
				return false, nil
			}
		}
		if in.err != nil {
			return false, in.err
		}
	}
	return false, in.fail("the number of an eager message", uint64(s.sequence()), uint64(in.expected), uint64(in.expected))
}

// Free frees the buffers of a message, once. The next message to the sender credits them, after all earlier ones have
// been freed.
func (c *Channel) Free(m Message) {
	in := &c.in
	for buffer := int(m.buffer) + 1; buffer < min(int(m.buffer+m.span), in.config.Buffers); buffer++ {
		word(in.memory, buffer*in.config.BufferBytes).Store(0)
	}
	in.freed[m.buffer] = uint16(m.span)
	owed := stamp(c.owed.Load())
	credits := owed.credits()
	for span := int(in.freed[in.tail]); span != 0; span = int(in.freed[in.tail]) {
		in.freed[in.tail] = 0
		var taken int
		taken, in.tail = in.config.taken(in.tail, span)
		credits += uint32(taken)
	}
	c.owed.Store(uint64(owed&polledBit | stamp(credits&creditMask)<<creditShift))
}

// fail records the first error of the peer.
func (in *receiver) fail(what string, value, least, most uint64) error {
	if in.err == nil {
		in.err = &ProtocolError{what, value, least, most}
	}
	return in.err
}
