package job

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A long message over a link goes by rendezvous: the receiver tells the sender of memory of its own, its landing,
// and the sender writes pieces of the message there, from where the program has them, and tells behind each how much
// there is. The receiver takes them from there, or adds them to what it has, while others come.
//
// A rank receives one message at a time, so it has one landing. It is not memory of the program: whatever a
// rank writes there late, nothing changes what a call that has ended by an error has given back. What is sent
// belongs to the link until the exchange is done or given up; if its context ends it, until one that was called again is.

const (
	// leastRendezvous is how long such a message is at least.
	leastRendezvous = 32 << 10
	// A landing is landingBytes long, in a large world less.
	landingBytes      = 1 << 20
	largeLandingBytes = 256 << 10
	// Pieces are no shorter, nor longer, where there are several.
	shortestRun = 16 << 10
	longestRun  = 128 << 10
	// rendezvousMark is set in the length that a header tells of such a message.
	rendezvousMark = 1 << 62
)

// runOf is how long the pieces of a message are.
func runOf(bytes int) int { return min(max(bytes/4, shortestRun), longestRun) &^ (wholeBytes - 1) }

func landingLength(size int) int {
	if size > largeWorld {
		return largeLandingBytes
	}
	return landingBytes
}

// A crossing is what two ranks know of messages that go by rendezvous between them. It belongs to progress.
type crossing struct {
	// place is the landing of the rank, if it is ready for a message. Of the last one that was begun put bytes
	// were told of, and taken.
	ready      bool
	place      verbs.RemoteRegion
	put, taken uint64
	// expected is how long the message is for which the rank was told of this one's landing: filled bytes of it have
	// come, of which the rank knows that told were taken. heading is its header, once it has come.
	expected, filled, told uint64
	headed                 bool
	heading                [headerBytes]byte
}

// rendezvousFrom is how long a message is at least for it to pay: if a copy of it takes longer than a message
// there and one back; or if its letters are so many that the sender has to wait until it hears that some were taken,
// which it may as well do before the first.
func (w *World) rendezvousFrom() int {
	copied := 2 * w.toll.message << 20 / max(w.toll.copied, 1)
	return max(int(min(w.mailWindow()/2+1, copied)), leastRendezvous)
}

// rendezvous tells whether its data is written to a landing.
func (p *parcel) rendezvous() bool { return p.header.length&rendezvousMark != 0 }

// openLanding makes the landing, once.
func (o *office) openLanding() error {
	if o.landing != nil {
		return nil
	}
	region, err := o.world.registry.Devices().Register(make([]byte, landingLength(o.world.size)), verbs.LocalWrite|verbs.RemoteWrite)
	if err == nil {
		o.landing = region
	}
	return err
}

// write sends what may be sent of a parcel to a rank's landing.
func (o *office) write(ctx context.Context, p *parcel) (moved bool, err error) {
	l, err := o.world.Link(p.rank)
	if err != nil {
		return false, &linkageError{p.rank, err}
	}
	if p.done == len(p.data) {
		return p.settle(l), nil
	}
	o.world.engine.Lock()
	c := &o.box(p.rank).crossing
	if !p.begun {
		if !c.ready {
			o.world.engine.Unlock()
			return false, nil
		}
		p.begun, p.place = true, c.place
		c.ready, c.put, c.taken = false, 0, 0
	}
	taken := int(c.taken)
	o.world.engine.Unlock()
	for p.done < len(p.data) {
		if p.put == p.done {
			area := landingLength(o.world.size)
			at := p.put % area
			n := min(len(p.data)-p.put, taken+area-p.put, area-at, runOf(len(p.data)))
			if n <= 0 {
				break
			}
			wrote, err := l.tryWrite(ctx, p.data[p.put:][:n], p.place, uint64(at))
			if err != nil {
				return moved, &linkageError{p.rank, err}
			}
			if !wrote {
				break
			}
			p.put += n
		}
		head := o.heading[:0]
		if p.done == 0 {
			head = o.heading[:]
			p.header.encode(head)
		}
		o.world.engine.Lock()
		c.put = uint64(p.put)
		o.world.engine.Unlock()
		told, err := l.tryTell(&Message{Kind: kindFilled, X: uint64(p.put)}, head)
		if err != nil {
			return moved, &linkageError{p.rank, err}
		}
		if !told {
			break
		}
		p.done, moved = p.put, true
	}
	if p.done == len(p.data) {
		p.mark, p.unsettled = l.Sent(), true
		if err := l.settle(p.mark); err != nil {
			return moved, &linkageError{p.rank, err}
		}
	} else {
		l.Post()
	}
	return moved, nil
}

// settle tells, once, that its data is the program's again: it is complete, or will never be, because the rank
// has left, maybe behind it, or has failed.
func (p *parcel) settle(l *Link) bool {
	if p.unsettled && (l.done.Load() >= p.mark.sequence || l.fault() != nil) {
		p.unsettled = false
		return true
	}
	return false
}

// land takes what has come of a parcel that is written to the landing, of which the rank is told first.
func (o *office) land(p *parcel) (moved bool, err error) {
	if !p.asked {
		if err := o.openLanding(); err != nil {
			return false, &linkageError{p.rank, err}
		}
		l, err := o.world.Link(p.rank)
		if err != nil {
			return false, &linkageError{p.rank, err}
		}
		o.world.engine.Lock()
		c := &o.box(p.rank).crossing
		c.expected, c.filled, c.told, c.headed = uint64(len(p.data)), 0, 0, false
		o.world.engine.Unlock()
		places := o.landing.Remote()
		place := o.world.Place(p.rank, &places)
		told, err := l.tryTell(&Message{Kind: kindReady, X: place.Address, Y: place.Length, Z: uint64(place.RKey)}, nil)
		if err != nil {
			return false, &linkageError{p.rank, err}
		}
		if !told {
			return false, nil
		}
		l.Post()
		p.asked = true
	}
	o.world.engine.Lock()
	box := o.box(p.rank)
	c := &box.crossing
	filled, headed, heading := int(c.filled), c.headed, &c.heading
	if !headed && len(box.letters) > 0 {
		// Something else has come, of another call.
		_, err = p.unpackHeader(box.letters[0])
	}
	o.world.engine.Unlock()
	if err != nil || filled == p.done {
		return false, err
	}
	if !p.begun {
		// Progress stores it once.
		if _, err := p.unpackHeader(heading[:]); err != nil {
			return false, err
		}
		p.begun = true
	}
	area := o.landing.Memory()
	for p.done < filled {
		at := p.done % len(area)
		n := min(filled-p.done, len(area)-at)
		if n < filled-p.done || filled < len(p.data) {
			n &^= wholeBytes - 1
		}
		if n == 0 {
			break
		}
		if err := p.store(o.world, area[at:][:n]); err != nil {
			return moved, err
		}
		moved = true
		o.tellLanded(p, len(area))
	}
	return moved, nil
}

// tellLanded tells a rank how much was taken, when it is much, if it needs the room.
func (o *office) tellLanded(p *parcel, area int) {
	o.world.engine.Lock()
	defer o.world.engine.Unlock()
	c := &o.box(p.rank).crossing
	if int(c.told)+area >= len(p.data) || 4*(p.done-int(c.told)) < area {
		return
	}
	if l := o.world.links[p.rank].Load(); l != nil {
		c.told = uint64(p.done)
		l.Reply(&Message{Kind: kindLanded, X: c.told}, nil)
	}
}

// ready notes the landing of a rank. As the others it is called in progress.
func (o *office) ready(from *Link, m *Message) error {
	c := &o.box(from.rank).crossing
	if length := landingLength(o.world.size); c.ready || m.Y != uint64(length) || m.Z > 1<<32-1 {
		return fmt.Errorf("%w: a landing of %s, where those of %d are allowed, one at a time", ErrMessage, errtext.Count(m.Y, "byte"), length)
	}
	c.ready, c.place = true, verbs.RemoteRegion{Address: m.X, Length: m.Y, RKey: uint32(m.Z)}
	return nil
}

// filled notes how much has come of a message.
func (o *office) filled(from *Link, m *Message, payload []byte) error {
	c := &o.box(from.rank).crossing
	switch most := min(c.expected, c.told+uint64(landingLength(o.world.size))); {
	case m.X <= c.filled || m.X > most:
		return fmt.Errorf("%w: %s of a message after %d; allowed are %d", ErrMessage, errtext.Count(m.X, "byte"), c.filled, most)
	case c.headed == (len(payload) > 0) || !c.headed && len(payload) != headerBytes:
		return fmt.Errorf("%w: a header of %s", ErrMessage, errtext.Count(len(payload), "byte"))
	}
	if !c.headed {
		copy(c.heading[:], payload)
		c.headed = true
	}
	c.filled = m.X
	return nil
}

// landed notes how much a rank has taken of a message.
func (o *office) landed(from *Link, taken uint64) error {
	c := &o.box(from.rank).crossing
	if taken < c.taken || taken > c.put {
		return fmt.Errorf("%w: %s of a message taken, of %d that were sent", ErrMessage, errtext.Count(taken, "byte"), c.put)
	}
	c.taken = taken
	return nil
}
