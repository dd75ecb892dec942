package channel

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/internal/raceorder"
)

// outlet is the pipe that this side writes to, in the memory of the peer.
type outlet struct {
	*pipe.Writer
	// most is the maximum length of a payload.
	most int
}

// inlet is the pipe that the peer writes to. Its messages are freed in any order, and their room is returned in the
// order of the messages.
type inlet struct {
	*pipe.Reader
	most int
	// freed has, for each message from first to next, its number of lines if it is freed, else zero. The index is the
	// message's number modulo the length of freed, which is a power of two.
	freed       []int32
	first, next uint32
}

// PipeLines is the length of the pipes of a Poller, in lines of 64 bytes. MostPiped is the length of the longest
// message that uses a pipe, in bytes.
const (
	PipeLines = 1024
	MostPiped = 8 << 10
)

// pipeShape returns the shape of a pipe for payloads of at most most bytes.
func pipeShape(most int) pipe.Config {
	return pipe.Config{Lines: PipeLines, MaxMessage: StampBytes + min(most, MostPiped)}
}

// ownPipe gives the receiver half the memory of a pipe, zeroed, which the peer maps. It is for a channel without a
// ring.
func (c *Channel) ownPipe(config pipe.Config, memory []byte) error {
	reader, err := pipe.NewReader(config, memory)
	if err != nil {
		return fmt.Errorf("channel: %w", err)
	}
	// A message takes at least one line.
	c.in.pipe = &inlet{Reader: reader, most: config.MaxMessage - StampBytes, freed: make([]int32, 1<<bits.Len(uint(config.Lines-1)))}
	return nil
}

// ownsPipe reports whether there is a pipe that the peer may write to.
func (c *Channel) ownsPipe() bool { return c.in.pipe != nil }

// disown drops a pipe that the peer cannot write to.
func (c *Channel) disown() { c.in.pipe = nil }

// errSecondPipe is the error of a second offer of a pipe.
var errSecondPipe = &ProtocolError{"the number of pipes that the peer has offered", 2, 1, 1}

// lendPipe gives the sender half the pipe that the peer has offered. The peer may offer only one.
func (c *Channel) lendPipe(config pipe.Config, memory []byte) error {
	if c.out.pipe != nil {
		return errSecondPipe
	}
	writer, err := pipe.NewWriter(config, memory)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	c.out.pipe = &outlet{writer, config.MaxMessage - StampBytes}
	return nil
}

// leavePipe ends the use of the peer's pipe. Nothing is stored there afterwards.
func (c *Channel) leavePipe() {
	if c.out.pipe != nil {
		c.out.pipe.Leave()
		c.out.pipe = nil
	}
}

// sendOnPipe stores a message, head and then body, in the peer's pipe. It returns false and sends nothing
// if there is no pipe, the peer does not poll it, the message is too long, or there is no room. An error is final.
func (c *Channel) sendOnPipe(head, body []byte) (sent bool, err error) {
	o, n, peer := c.out.pipe, len(head)+len(body), stamp(c.peerStamp.Load())
	if o == nil || n > o.most || peer&polledBit == 0 {
		return false, nil
	}
	place, err := o.Place(StampBytes + n)
	if place == nil {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrProtocol, err)
		}
		return false, err
	}
	payload := place[StampBytes:]
	copied := cpucopy.Copy(payload, head)
	if len(body) > 0 {
		cpucopy.Copy(payload[copied:], body)
	}
	c.out.left = peer.sequence()
	binary.NativeEndian.PutUint64(place, uint64(c.nextStamp(true)))
	raceorder.Release()
	o.Send(StampBytes + n)
	return true, nil
}

// pollPipe takes the next message from the pipe, and reports whether there was one. A message stays there until the
// earlier eager messages have been taken. An error is final.
func (c *Channel) pollPipe(m *Message) (some bool, err error) {
	in, p := &c.in, c.in.pipe
	if in.err != nil {
		return false, in.err
	}
	message, err := p.Next()
	if message == nil {
		if err != nil {
			return false, in.broken(err)
		}
		return false, nil
	}
	raceorder.Acquire()
	if len(message) <= StampBytes {
		return false, in.fail("the length of a message in the pipe", uint64(len(message)), StampBytes+1, uint64(StampBytes+p.most))
	}
	s := stamp(binary.NativeEndian.Uint64(message))
	if s.sequence() != in.expected || s&usesBit == 0 {
		return false, in.unfit(s)
	}
	if uint32((s&^usesBit)>>creditShift) == uint32(c.peerStamp.Load()>>creditShift) {
		// The stamp has nothing new.
		in.expected++
	} else if !c.takeStamp(s) {
		return false, in.err
	}
	m.Payload = message[StampBytes:]
	m.buffer, m.span = int32(p.next), int32(p.Take())
	p.next++
	if in.watched != nil {
		p.watch(in.watched)
	}
	return true, nil
}

// unfit returns the error of a message in the pipe that is not the next one. It returns nil if eager messages come
// before it.
func (in *receiver) unfit(s stamp) error {
	switch ahead := int32(s.sequence() - in.expected); {
	case ahead < 0:
		return in.fail("the number of a message in the pipe", uint64(s.sequence()), uint64(in.expected), uint64(in.expected)+1<<31-1)
	case ahead == 0:
		return in.fail("that the pipe is used, said in the pipe,", 0, 1, 1)
	}
	return nil
}

// pending reports whether the next message is in the pipe.
func (c *Channel) pending() bool {
	early, _ := c.in.pipe.holds(c.in.expected)
	return early && c.in.err == nil
}

// freeOfPipe frees a message of pollPipe. Each message must be freed once. The order does not matter.
func (c *Channel) freeOfPipe(m *Message) {
	raceorder.Release()
	c.in.pipe.free(uint32(m.buffer), int(m.span))
}

// at returns the entry of a message in freed.
func (p *inlet) at(number uint32) *int32 { return &p.freed[number&uint32(len(p.freed)-1)] }

func (p *inlet) free(number uint32, lines int) {
	if number != p.first {
		*p.at(number) = int32(lines)
		return
	}
	if p.first++; *p.at(p.first) != 0 {
		lines += p.takeFreed()
	}
	p.Return(lines)
}

// takeFreed takes the freed messages from first on, and returns their number of lines.
func (p *inlet) takeFreed() (lines int) {
	for freed := p.at(p.first); *freed != 0; freed = p.at(p.first) {
		lines += int(*freed)
		*freed = 0
		p.first++
	}
	return lines
}

// watch points a look at the place where the next message begins.
func (p *inlet) watch(l *look) {
	head, number := p.Look()
	l.word, l.due = head, uint64(number)
}

// holds reports whether the next message in the pipe is there and has that number.
func (p *inlet) holds(number uint32) (bool, error) {
	message, err := p.Next()
	if len(message) <= StampBytes {
		return false, err
	}
	return stamp(binary.NativeEndian.Uint64(message)).sequence() == number, nil
}

// look returns a look at the ring or pipe.
func (in *receiver) look() look {
	if in.pipe == nil {
		return ringLook(in.head)
	}
	l := look{mask: 1<<32 - 1, pipe: true}
	in.pipe.watch(&l)
	return l
}

// broken records an error of package pipe, if there is one, as the receiver's first error.
func (in *receiver) broken(err error) error {
	if err != nil && in.err == nil {
		in.err = fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return in.err
}
