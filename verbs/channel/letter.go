package channel

import (
	"github.com/onesided/rma/verbs"
)

// letterHead is the length of the head of an End's eager message: a stamp, a byte for its kind, and seven of zero. The
// payload follows.
const letterHead = StampBytes + wordBytes

const (
	// kindNothing is an eager message only for its stamp.
	kindNothing byte = iota
	kindMessage
	kindOffer
	// kindPipe offers a pipe. kindUnmapped responds that it cannot be mapped.
	kindPipe
	kindUnmapped
	kinds
)

// letterBytes returns the length of the longest eager message.
func (p *Poller) letterBytes() int {
	return padded(letterHead + max(p.options.MaxMessage, OfferBytes, pipeOfferBytes))
}

// letter returns the eager buffer of a slot. The first slots are for receiving, the others for sending.
func (e *End) letter(slot int) []byte {
	n := e.poller.letterBytes()
	return e.letters.Memory()[slot*n : (slot+1)*n]
}

// mail sends an eager message.
func (e *End) mail(kind byte, head []byte, body verbs.Segment) error {
	o := &e.poller.options
	if int(e.sent-e.gone) >= o.Letters || int(e.written-e.done)+2 > o.MaxSends {
		return verbs.ErrQueueFull
	}
	letter := e.letter(o.Letters + e.next)
	e.sent++
	e.next = (e.next + 1) % o.Letters
	e.channel.StampLetter(letter)
	clear(letter[StampBytes:letterHead])
	letter[StampBytes] = kind
	e.poller.device.Copy(letter[letterHead:], head)
	e.gather(e.request(0, verbs.OpSend, 0), 0, verbs.Segment{Memory: letter[:letterHead+len(head)], LKey: e.letters.LKey()}, body)
	return e.post(1, len(body.Memory) > 0)
}

// tell sends the peer what it has to know, and the offer of a ring. It returns false if there was no room.
func (e *End) tell() bool {
	c := e.channel
	if e.unmapped {
		e.unmapped = e.mail(kindUnmapped, nil, verbs.Segment{}) != nil
		return !e.unmapped
	}
	if c.Polled() && !e.offered && c.ownsPipe() {
		e.offered = e.mail(kindPipe, e.pipeOffer(), verbs.Segment{}) == nil
		return e.offered
	}
	if c.Polled() && !e.offered && c.Owns() {
		var encoded [OfferBytes]byte
		offer := OfferOf(e.poller.options.Ring, e.own.Remote())
		offer.Encode(encoded[:])
		e.offered = e.mail(kindOffer, encoded[:], verbs.Segment{}) == nil
		return e.offered
	}
	if !c.NeedsTelling() {
		return true
	}
	if int(e.written-e.done)+2 <= e.poller.options.MaxSends && c.Place(0) != nil {
		return e.write(c.Seal(0), verbs.Segment{}) == nil
	}
	return e.mail(kindNothing, nil, verbs.Segment{}) == nil
}

// takeLetters takes the eager messages that have arrived, and the messages of the ring before them.
func (e *End) takeLetters(into []Arrival) (n int) {
	taken := 0
	for ; taken < len(e.arrived) && n < len(into) && e.err == nil; taken++ {
		slot := e.arrived[taken].slot
		letter := e.letter(slot)[:e.arrived[taken].bytes]
		for {
			turn, err := e.channel.Letter(letter)
			if err != nil {
				e.fail(err)
			}
			if e.err != nil {
				return n
			}
			if turn {
				break
			}
			expected := e.channel.in.expected
			if n += e.takeRing(into[n:]); n == len(into) {
				e.forget(taken)
				return n
			}
			if e.channel.in.expected == expected {
				e.fail(&ProtocolError{"the number of messages in the ring before a letter", 0, 1, 1})
			}
		}
		n += e.take(letter, slot, &into[n])
	}
	e.forget(taken)
	return n
}

// forget drops eager messages that were taken.
func (e *End) forget(taken int) { e.arrived = e.arrived[:copy(e.arrived, e.arrived[taken:])] }

// take processes the next eager message in order. It returns 1 for a message with payload, which it stores in arrival,
// and 0 otherwise.
func (e *End) take(letter []byte, slot int, arrival *Arrival) int {
	e.poller.owe(e)
	if len(letter) < letterHead || letter[StampBytes] >= kinds {
		e.fail(&ProtocolError{"the kind or length of a letter", uint64(len(letter)), letterHead, uint64(e.poller.letterBytes())})
		return 0
	}
	payload := letter[letterHead:]
	switch letter[StampBytes] {
	case kindMessage:
		*arrival = Arrival{End: e, Message: Message{Payload: payload}, slot: slot}
		e.poller.heard(e)
		return 1
	case kindOffer, kindPipe, kindUnmapped:
		var err error
		switch letter[StampBytes] {
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
	e.place[0] = verbs.Segment{Memory: e.letter(slot), LKey: e.letters.LKey()}
	e.receive[0] = verbs.ReceiveRequest{ID: receiveBit | uint64(slot), Segments: e.place[:]}
	if _, err := e.pair.PostReceive(e.receive[:]); err != nil {
		e.fail(err)
	}
}
