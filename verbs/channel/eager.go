package channel

import (
	"github.com/onesided/rma/verbs"
)

// eagerHead is the length of the head of an End's eager message: a stamp, a byte for its kind, and seven of zero. The
// payload follows.
const eagerHead = StampBytes + wordBytes

const (
	// kindStamp is an eager message only for its stamp.
	kindStamp byte = iota
	kindMessage
	kindOffer
	// kindPipe offers a pipe. kindUnmapped responds that it cannot be mapped.
	kindPipe
	kindUnmapped
	kinds
)

// eagerBytes returns the length of the longest eager message.
func (p *Poller) eagerBytes() int {
	return padded(eagerHead + max(p.options.MaxMessage, OfferBytes, pipeOfferBytes))
}

// eagerBuffer returns the eager buffer of a slot. The first slots are for receiving, the others for sending.
func (e *End) eagerBuffer(slot int) []byte {
	n := e.poller.eagerBytes()
	return e.eagerMemory.Memory()[slot*n : (slot+1)*n]
}

// sendEager sends an eager message.
func (e *End) sendEager(kind byte, head []byte, body verbs.Segment) error {
	o := &e.poller.options
	if int(e.sent-e.gone) >= o.EagerMessages || int(e.written-e.done)+2 > o.MaxSends {
		return verbs.ErrQueueFull
	}
	message := e.eagerBuffer(o.EagerMessages + e.next)
	e.sent++
	e.next = (e.next + 1) % o.EagerMessages
	e.channel.StampEager(message)
	clear(message[StampBytes:eagerHead])
	message[StampBytes] = kind
	e.poller.device.Copy(message[eagerHead:], head)
	e.gather(e.request(0, verbs.OpSend, 0), 0, verbs.Segment{Memory: message[:eagerHead+len(head)], LKey: e.eagerMemory.LKey()}, body)
	return e.post(1, len(body.Memory) > 0)
}

// sendOwed sends the peer what it has to know, and the offer of a ring. It returns false if there was no room.
func (e *End) sendOwed() bool {
	c := e.channel
	if e.unmapped {
		e.unmapped = e.sendEager(kindUnmapped, nil, verbs.Segment{}) != nil
		return !e.unmapped
	}
	if c.Polled() && !e.offered && c.ownsPipe() {
		e.offered = e.sendEager(kindPipe, e.pipeOffer(), verbs.Segment{}) == nil
		return e.offered
	}
	if c.Polled() && !e.offered && c.Owns() {
		var encoded [OfferBytes]byte
		offer := OfferOf(e.poller.options.Ring, e.own.Remote())
		offer.Encode(encoded[:])
		e.offered = e.sendEager(kindOffer, encoded[:], verbs.Segment{}) == nil
		return e.offered
	}
	if !c.NeedsStamp() {
		return true
	}
	if int(e.written-e.done)+2 <= e.poller.options.MaxSends && c.Place(0) != nil {
		return e.write(c.Seal(0), verbs.Segment{}) == nil
	}
	return e.sendEager(kindStamp, nil, verbs.Segment{}) == nil
}

// takeEager takes the eager messages that have arrived, and the messages of the ring before them.
func (e *End) takeEager(into []Arrival) (n int) {
	taken := 0
	for ; taken < len(e.arrived) && n < len(into) && e.err == nil; taken++ {
		slot := e.arrived[taken].slot
		message := e.eagerBuffer(slot)[:e.arrived[taken].bytes]
		for {
			next, err := e.channel.TakeEager(message)
			if err != nil {
				e.fail(err)
			}
			if e.err != nil {
				return n
			}
			if next {
				break
			}
			expected := e.channel.in.expected
			if n += e.takeRing(into[n:]); n == len(into) {
				e.forget(taken)
				return n
			}
			if e.channel.in.expected == expected {
				e.fail(&ProtocolError{"the number of messages in the ring before an eager message", 0, 1, 1})
			}
		}
		n += e.take(message, slot, &into[n])
	}
	e.forget(taken)
	return n
}

// forget drops eager messages that were taken.
func (e *End) forget(taken int) { e.arrived = e.arrived[:copy(e.arrived, e.arrived[taken:])] }

// take processes the next eager message in order. It returns 1 for a message with payload, which it stores in arrival,
// and 0 otherwise.
func (e *End) take(message []byte, slot int, arrival *Arrival) int {
	e.poller.owe(e)
	if len(message) < eagerHead || message[StampBytes] >= kinds {
		e.fail(&ProtocolError{"the kind or length of an eager message", uint64(len(message)), eagerHead, uint64(e.poller.eagerBytes())})
		return 0
	}
	payload := message[eagerHead:]
	switch message[StampBytes] {
	case kindMessage:
		*arrival = Arrival{End: e, Message: Message{Payload: payload}, slot: slot}
		e.poller.count(e)
		return 1
	case kindOffer, kindPipe, kindUnmapped:
		var err error
		switch message[StampBytes] {
		case kindOffer:
			err = e.lend(payload)
		case kindPipe:
			err = e.lendPipe(payload)
		case kindUnmapped:
			err = e.withdrawPipe()
		}
		if err != nil {
			e.fail(err)
			return 0
		}
	}
	e.await(slot)
	return 0
}

// await posts the receive of an eager buffer.
func (e *End) await(slot int) {
	e.place[0] = verbs.Segment{Memory: e.eagerBuffer(slot), LKey: e.eagerMemory.LKey()}
	e.receive[0] = verbs.ReceiveRequest{ID: receiveBit | uint64(slot), Segments: e.place[:]}
	if _, err := e.pair.PostReceive(e.receive[:]); err != nil {
		e.fail(err)
	}
}
