package channel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// An End is one side of a connection over a queue pair. Messages go in order, by the peer's ring, by a pipe, or as
// eager messages.
type End struct {
	poller  *Poller
	channel *Channel
	pair    verbs.QueuePair
	// own is the ring or pipe in which this side receives. mirror is the memory from which the peer's ring is written.
	// neighbor is the peer if there is a pipe to it.
	own, mirror verbs.MemoryRegion
	peer        Offer
	neighbor    verbs.Neighbor
	// eagerMemory has the eager buffers for receiving, and then those for sending. arrived are the received ones that
	// were not taken.
	eagerMemory verbs.MemoryRegion
	arrived     []received
	// next is the next eager buffer for sending.
	next int
	// offered: the peer knows the ring or pipe. ringless: there is no memory for one. pipeless: the peer cannot map
	// this side's pipe. unmapped: this side cannot map the peer's pipe and has to say so.
	offered, ringless, pipeless, unmapped, owes bool

	// written counts the posted requests, sent the eager messages among them. done and gone count those that have
	// completed. signalled, marked and signed are written, the mark and sent at the last signalled request. lends:
	// memory was lent to the request with the number lent.
	written, done, signalled, sent, gone, signed, lent uint16

	lends  bool
	marked uint32
	// requests and their segments are filled in once, except for what changes.
	requests [2]verbs.SendRequest
	segments [2][3]verbs.Segment
	receive  [1]verbs.ReceiveRequest
	place    [1]verbs.Segment
	// lost is why the connection ends once everything that has arrived is taken.
	lost, err error
}

// received is the slot and the length of a received eager message.
type received struct{ slot, bytes int }

// Connect starts to connect to the device at an address, as verbs.Device.Connect does.
func (p *Poller) Connect(address string, hello []byte) (*End, error) {
	return p.open(func(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
		return p.device.Connect(address, hello, config)
	})
}

// Accept accepts a connection request of a peer.
func (p *Poller) Accept(request verbs.ConnectionRequest) (*End, error) {
	return p.open(request.Accept)
}

func (p *Poller) open(create func(verbs.QueuePairConfig) (verbs.QueuePair, error)) (*End, error) {
	o := &p.options
	e := &End{poller: p, channel: New(TraitsOf(&p.attributes)), arrived: make([]received, 0, o.EagerMessages)}
	var err error
	if e.eagerMemory, err = RingMemory(p.device, 2*o.EagerMessages*p.eagerBytes(), verbs.LocalWrite); err != nil {
		return nil, err
	}
	e.pair, err = create(verbs.QueuePairConfig{SendQueue: p.queue, ReceiveQueue: p.queue, MaxSends: o.MaxSends, MaxReceives: o.EagerMessages})
	if err != nil {
		return nil, errors.Join(err, FreeRing(p.device, e.eagerMemory))
	}
	e.channel.ID = len(p.ends)
	if free := slices.Index(p.ends, nil); free >= 0 {
		e.channel.ID = free
		p.ends[free] = e
	} else {
		p.ends = append(p.ends, e)
	}
	p.pairs[e.pair.Number()] = e
	for slot := range o.EagerMessages {
		e.await(slot)
	}
	return e, e.err
}

// ring makes the ring or pipe in which this side receives, and reports whether there is one.
func (e *End) ring() bool {
	if owns := e.channel.Owns() || e.channel.ownsPipe(); owns || e.ringless || e.err != nil {
		return owns && e.err == nil
	}
	if e.poller.mapper != nil && !e.pipeless {
		return e.ownPipe()
	}
	config := e.poller.options.Ring
	return e.receiveIn(config.Bytes(), func(memory []byte) error { return e.channel.Own(config, memory) })
}

// receiveIn makes memory in which this side receives, and reports whether there is some.
func (e *End) receiveIn(bytes int, own func(memory []byte) error) bool {
	region, err := RingMemory(e.poller.device, bytes, verbs.LocalWrite|verbs.RemoteWrite)
	if err == nil {
		if err = own(region.Memory()); err != nil {
			_ = FreeRing(e.poller.device, region)
		}
	}
	if err != nil {
		// Eager messages suffice.
		e.ringless = true
		return false
	}
	e.own = region
	return true
}

// lend makes the memory from which the ring that the peer has offered is written.
func (e *End) lend(encoded []byte) error {
	var offer Offer
	if err := offer.Decode(encoded); err != nil {
		return err
	}
	if e.mirror != nil {
		return errSecondRing
	}
	if n, most := offer.Bytes(), e.poller.options.Ring.Bytes(); n > most {
		return &ProtocolError{"the length of a ring that the peer has offered", uint64(n), 1, uint64(most)}
	}
	e.peer = offer
	region, err := RingMemory(e.poller.device, e.peer.Bytes(), 0)
	if err != nil {
		return fmt.Errorf("channel: the memory for a ring of %d bytes: %w", e.peer.Bytes(), err)
	}
	if err := e.channel.Lend(e.peer.Config, region.Memory()); err != nil {
		return errors.Join(err, FreeRing(e.poller.device, region))
	}
	e.mirror = region
	return nil
}

// Send sends a message of 1 to Options.MaxMessage bytes, which belong to the caller again at return. If it returns
// verbs.ErrQueueFull, the caller may try again after a Poll.
func (e *End) Send(payload []byte) error {
	if e.neighbor != nil && e.lost == nil && len(payload) > 0 {
		// An End that has ended has no pipe.
		if sent, err := e.channel.sendOnPipe(payload, nil); sent {
			e.neighbor.Wake()
			return nil
		} else if err != nil {
			e.fail(err)
		}
	}
	return e.send(payload, verbs.Segment{})
}

// SendFrom is Send of head followed by registered memory. The card may read that memory while Lent returns true.
func (e *End) SendFrom(head []byte, body verbs.Segment) error { return e.send(head, body) }

func (e *End) send(head []byte, body verbs.Segment) error {
	n := len(head) + len(body.Memory)
	switch {
	case e.err != nil:
		return e.err
	case n < 1 || n > e.poller.options.MaxMessage:
		return fmt.Errorf("channel: a message of %s; allowed are 1 to %d", errtext.Count(n, "byte"), e.poller.options.MaxMessage)
	case e.lost != nil:
		return fmt.Errorf("channel: connection %d: %w", e.channel.ID, e.lost)
	}
	if e.neighbor != nil {
		sent, err := e.channel.sendOnPipe(head, body.Memory)
		if err != nil {
			e.fail(err)
			return e.err
		}
		if sent {
			e.neighbor.Wake()
			return nil
		}
	}
	if int(e.written-e.done)+2 > e.poller.options.MaxSends {
		return verbs.ErrQueueFull
	}
	place := e.channel.Place(n)
	if place == nil && e.peer.MaxMessage >= n {
		if e.takeCredits(); e.err != nil {
			return e.err
		}
		place = e.channel.Place(n)
	}
	if place != nil {
		e.poller.device.Copy(place, head)
		return e.write(e.channel.SealGathered(n, len(body.Memory)), body)
	}
	return e.sendEager(kindMessage, head, body)
}

// takeCredits takes the credits that the peer may have returned.
func (e *End) takeCredits() {
	if e.poller.rings != nil {
		e.poller.rings.PollRings(1)
	}
	if err := e.channel.TakeStamps(); err != nil {
		e.fail(err)
	}
	e.poller.owe(e)
}

// write writes a message to the peer's ring.
func (e *End) write(w Write, body verbs.Segment) error {
	memory, key := e.mirror.Memory(), e.mirror.LKey()
	r := e.request(0, verbs.OpRDMAWrite, w.Offset)
	whole := memory[w.Offset : w.Offset+w.Length]
	if w.Gap == 0 {
		e.gather(r, 0, verbs.Segment{Memory: whole, LKey: key})
	} else {
		e.gather(r, 0, verbs.Segment{Memory: whole[:w.GapAt], LKey: key}, body, verbs.Segment{Memory: whole[w.GapAt+w.Gap:], LKey: key})
	}
	n := 1
	if w.Flagged {
		e.gather(e.request(1, verbs.OpRDMAWrite, w.Flag), 1, verbs.Segment{Memory: memory[w.Flag : w.Flag+FlagBytes], LKey: key})
		n = 2
	}
	return e.post(n, len(body.Memory) > 0)
}

// request returns one of the two reused requests.
func (e *End) request(i int, opcode verbs.Opcode, offset int) *verbs.SendRequest {
	r := &e.requests[i]
	r.Opcode, r.Flags, r.RemoteAddress, r.RKey = opcode, 0, e.peer.Address+uint64(offset), e.peer.RKey
	return r
}

// gather sets the segments of a request. Short ones go inline if the card can do that.
func (e *End) gather(r *verbs.SendRequest, i int, segments ...verbs.Segment) {
	n, bytes := 0, 0
	for _, s := range segments {
		if len(s.Memory) > 0 {
			e.segments[i][n] = s
			bytes += len(s.Memory)
			n++
		}
	}
	r.Segments = e.segments[i][:n]
	if bytes <= e.poller.attributes.MaxInline {
		r.Flags |= verbs.Inline
	}
}

// post posts n of the requests. It signals the last one often enough to bound what is outstanding: requests, eager
// messages, and the writes of a card that resends. It always signals if memory of the program is lent.
func (e *End) post(n int, lends bool) error {
	o := &e.poller.options
	e.written += uint16(n)
	if lends {
		e.lends, e.lent = true, e.written
	}
	mark := e.channel.Mark()
	if lends || o.SignalAll || int(e.written-e.signalled) >= o.MaxSends/4 || 2*int(e.sent-e.signed) >= o.EagerMessages ||
		e.channel.out.traits.Resends && 2*since(mark, e.marked) >= e.peer.Buffers && e.mirror != nil {
		last := &e.requests[n-1]
		last.Flags |= verbs.Signalled
		last.ID = uint64(e.written) | uint64(e.sent)<<sentShift | uint64(mark)<<markShift
		e.signalled, e.signed, e.marked = e.written, e.sent, mark
	}
	if _, err := e.pair.PostSend(e.requests[:n]); err != nil {
		e.fail(err)
		return err
	}
	return nil
}

// The ID of a signalled request has the numbers of requests and eager messages posted, and the mark. The ID of a
// receive has a bit that says so, and the slot.
const (
	sentShift, markShift = 16, 32
	receiveBit           = 1 << 63
)

// completed processes a completion.
func (e *End) completed(c *verbs.Completion) {
	switch {
	case c.Status != verbs.StatusSuccess:
		err := e.pair.Err()
		if err == nil {
			err = c.Status
		}
		e.lose(err)
	case c.ID&receiveBit != 0:
		if len(e.arrived) == 0 {
			e.poller.withArrived = append(e.poller.withArrived, e)
		}
		e.poller.piped = false
		e.arrived = append(e.arrived, received{int(c.ID &^ receiveBit), int(c.Bytes)})
	default:
		e.done, e.gone = uint16(c.ID), uint16(c.ID>>sentShift)
		e.lends = e.lends && int16(e.done-e.lent) < 0
		e.channel.Completed(uint32(c.ID>>markShift) & creditMask)
	}
}

// takeRing takes messages from the ring or pipe. Without room for them it takes only those without payload.
func (e *End) takeRing(into []Arrival) (n int) {
	if e.channel.ownsPipe() {
		return e.takePipe(into)
	}
	if len(into) == 0 {
		if err := e.channel.TakeStamps(); err != nil {
			e.fail(err)
		}
	}
	for n < len(into) {
		m, some, err := e.channel.Poll()
		if err != nil {
			e.fail(err)
		}
		if !some {
			break
		}
		into[n] = Arrival{End: e, Message: m, slot: byRing}
		n++
		e.poller.count(e)
	}
	// Messages without payload have been freed.
	e.poller.owe(e)
	return n
}

// Release frees a message.
func (e *End) Release(a *Arrival) {
	switch {
	case e.err != nil || e.lost != nil || a.Err != nil:
	case a.slot == byPipe:
		e.channel.freeOfPipe(&a.Message)
	case a.slot == byRing:
		e.channel.Free(a.Message)
		e.poller.owe(e)
	default:
		e.await(a.slot)
	}
}

// Lent reports whether the card may still read the memory of the last SendFrom. A poll, or the end of the connection,
// makes it false.
func (e *End) Lent() bool { return e.lends }

// Err returns why the connection has ended.
func (e *End) Err() error { return e.err }

// fail ends the connection.
func (e *End) fail(err error) {
	if e.err != nil {
		return
	}
	e.err = fmt.Errorf("channel: connection %d: %w", e.channel.ID, err)
	e.channel.leavePipe()
	e.lends = false
	e.poller.set.Remove(e.channel)
	e.poller.ended, e.poller.quiet = append(e.poller.ended, e), false
	_ = e.pair.Close()
}

// Close ends the connection and frees its memory.
func (e *End) Close() error {
	p := e.poller
	if e.channel.ID < 0 {
		return nil
	}
	p.set.Remove(e.channel)
	delete(p.pairs, e.pair.Number())
	p.ends[e.channel.ID], e.channel.ID = nil, -1
	is := func(other *End) bool { return other == e }
	p.withArrived, p.owing, p.ended = slices.DeleteFunc(p.withArrived, is), slices.DeleteFunc(p.owing, is), slices.DeleteFunc(p.ended, is)
	p.lost = slices.DeleteFunc(p.lost, is)
	if e.err == nil {
		e.err = fmt.Errorf("channel: the connection: %w", verbs.ErrClosed)
	}
	e.lends = false
	e.channel.leavePipe()
	return errors.Join(e.pair.Close(), e.freeOwn(), p.freeRetired(), FreeRing(p.device, e.mirror), FreeRing(p.device, e.eagerMemory))
}
