package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// Queued operations are planned, and sent in the order of the plan. Packed ones go in packets, each of which is a
// message. Direct ones go after what is packed. Planned operations are kept until all of them have left. So if a
// context ends a call, the next call continues.

// arrivals has the places of the parts of the response to a packet.
type arrivals struct {
	deferred *deferred
	places   []place
	next     *arrivals
}

// place is the memory of a part of a response.
type place struct {
	to    *byte
	bytes int
}

// carryOut sends what is queued. following is what follows it. The caller holds the mutex.
func (d *deferred) carryOut(ctx context.Context, following scheduler.Following) error {
	for {
		if d.step == len(d.plan.Steps) {
			if err := d.sendPacket(ctx); err != nil {
				return err
			}
			d.queue.Drop(d.planned)
			d.queue.EndRun()
			d.step, d.planned = 0, len(d.queue.Operations)
			d.lookUp()
			d.planner.Plan(d.queue.Operations, following, &d.plan)
			d.final = -1
			if following == scheduler.End {
				d.final = d.plan.LastDirect()
			}
			if d.planned == 0 {
				return nil
			}
		}
		step := &d.plan.Steps[d.step]
		part := d.queue.Operations[step.First:][:step.Count]
		var err error
		if step.Packed {
			err = d.pack(ctx, part, step.Bytes)
		} else {
			err = d.direct(ctx, &part[0], d.step == d.final)
		}
		if err != nil {
			return err
		}
		d.step++
	}
}

// lookUp marks queued operations on unregistered memory, and records the use of the memory.
func (d *deferred) lookUp() {
	if !d.link.Registers() {
		return
	}
	for i := range d.queue.Operations {
		switch o := &d.queue.Operations[i]; o.Kind {
		case aggregate.Put:
			o.Unregistered = !d.link.Use(bytesAt(o.Origin, o.Bytes), true)
		case aggregate.Get:
			o.Unregistered = !d.link.Use(bytesAt(o.Result, o.Bytes), false)
		}
	}
}

// drop forgets operations that were not sent.
func (d *deferred) drop() {
	d.queue.Drop(len(d.queue.Operations))
	d.step, d.planned, d.plan.Steps = 0, 0, d.plan.Steps[:0]
	d.unpack()
}

// direct sends an operation by RDMA, after what is packed. If final is set the caller waits for its completion, which
// arrives earlier than that of a later message.
func (d *deferred) direct(ctx context.Context, o *scheduler.Operation, final bool) error {
	if err := d.sendPacket(ctx); err != nil {
		return err
	}
	if err := d.pass(ctx); err != nil {
		return err
	}
	d.flown, d.flying = true, true
	d.directs++
	d.counts.direct.count(o.Kind, 1, o.Bytes)
	if final {
		d.link.ExpectNext()
	}
	var err error
	switch o.Kind {
	case aggregate.Put:
		err = d.link.Write(ctx, bytesAt(o.Origin, o.Bytes), d.region, o.Offset)
	case aggregate.Get:
		err = d.link.Read(ctx, bytesAt(o.Result, o.Bytes), d.region, o.Offset)
	case aggregate.Swap:
		err = d.link.CompareSwap(ctx, o.Value[0], o.Value[1], wordAt(o.Result), d.region, o.Offset)
	default:
		err = d.link.FetchAdd(ctx, o.Value[0], wordAt(o.Result), d.region, o.Offset)
	}
	d.lastDirect = d.link.Sent()
	return err
}

// pack packs operations as one, of bytes bytes. A put or get that is longer than a packet is cut. If a call was cut
// short in one, only the bytes after packed remain.
func (d *deferred) pack(ctx context.Context, operations []scheduler.Operation, bytes int) error {
	o := &operations[0]
	if o.Run > 0 {
		return d.packRun(ctx, o)
	}
	shape := aggregate.Shape{Kind: o.Kind, Op: o.Op, Element: o.Element, Size: bytes}
	if bytes <= d.most {
		operand, err := d.place(ctx, &shape, o.Offset)
		if err != nil {
			return err
		}
		switch {
		case o.Kind == aggregate.Put:
			for i := range operations {
				put := &operations[i]
				copy(operand[put.Offset-o.Offset:], bytesAt(put.Origin, put.Bytes))
			}
		case o.Origin != nil:
			copy(operand, bytesAt(o.Origin, bytes))
		case o.Kind != aggregate.Get:
			copy(operand, wordsAt(&o.Value))
		}
		if o.Reads() {
			d.arrivals.places = append(d.arrivals.places, place{o.Result, bytes})
		}
		d.packedAll(o.Kind, len(operations), bytes)
		return nil
	}
	for d.packed < bytes {
		done := d.packed
		shape.Size = min(bytes-done, d.most)
		operand, err := d.place(ctx, &shape, o.Offset+uint64(done))
		if err != nil {
			return err
		}
		if o.Kind == aggregate.Put {
			copy(operand, bytesAt(o.Origin, bytes)[done:])
		} else {
			d.arrivals.places = append(d.arrivals.places, place{&bytesAt(o.Result, bytes)[done], shape.Size})
		}
		d.packed += shape.Size
	}
	d.packed = 0
	d.packedAll(o.Kind, len(operations), bytes)
	return nil
}

// packedAll counts packed operations of bytes bytes in all.
func (d *deferred) packedAll(kind aggregate.Kind, operations, bytes int) {
	d.counts.packed.count(kind, operations, bytes)
	if kind != aggregate.Get {
		d.core.world.Copied(bytes)
	}
}

// wordBytes is the length of a word.
const wordBytes = 8

// packRun packs a run. If a call was cut short in it, only the words after packed remain.
func (d *deferred) packRun(ctx context.Context, o *scheduler.Operation) error {
	words, count := d.queue.Run(o), int(o.Run)
	shape := aggregate.Shape{Kind: o.Kind, Op: o.Op, Element: o.Element, Size: o.Bytes / count}
	for {
		d.packed += wordBytes * d.packet.AddWords(&shape, words[d.packed/wordBytes:])
		if d.packed == wordBytes*len(words) {
			break
		}
		if err := d.turn(ctx); err != nil {
			return err
		}
	}
	d.packed = 0
	d.packedAll(o.Kind, count, o.Bytes)
	return nil
}

// turn sends the packet and begins the next one.
func (d *deferred) turn(ctx context.Context) error {
	if d.whole && d.packet.Operations() > 0 {
		return errNoRoom
	}
	if err := d.sendPacket(ctx); err != nil {
		return err
	}
	if d.memory == nil {
		d.memory = resized(nil, d.link.MaxPayload())
	}
	d.packet.Begin(d.memory, d.link.MaxPayload())
	return nil
}

// place returns the memory for an operation's operand, in the next packet if this one has no room.
func (d *deferred) place(ctx context.Context, shape *aggregate.Shape, offset uint64) ([]byte, error) {
	operand, ok := d.packet.Add(shape, offset)
	if !ok {
		if err := d.turn(ctx); err != nil {
			return nil, err
		}
		if operand, ok = d.packet.Add(shape, offset); !ok {
			return nil, fmt.Errorf("an operation of %s, a message to rank %d has room for %d", errtext.Count(shape.Size, "byte"), d.link.Rank(), d.link.MaxPayload())
		}
	}
	if shape.Response() > 0 && d.arrivals == nil {
		d.arrivals = d.newArrivals()
	}
	return operand, nil
}

// sendPacket sends what is packed.
func (d *deferred) sendPacket(ctx context.Context) error { return d.sendPacketWith(ctx, nil) }

// sendPacketWith sends the packet. Its end is operand, which is sent from where it is.
func (d *deferred) sendPacketWith(ctx context.Context, operand []byte) error {
	if d.packet.Operations() == 0 {
		return nil
	}
	t := &d.core.tallies
	t.packets.Store(true)
	m := job.Message{Kind: messagePacket, Service: d.core.number, X: uint64(t.passed.Load()), More: operand}
	packet := d.packet.Packet()
	packet = packet[:len(packet)-len(operand)]
	var err error
	if d.arrivals == nil {
		err = d.link.TellWithin(ctx, &m, packet)
	} else {
		err = d.link.AskFor(ctx, &m, packet, d.arrivals)
	}
	if err == nil {
		d.counts.packets++
		d.arrivals = nil
		d.packet.Begin(nil, 0)
	}
	return err
}

func (d *deferred) newArrivals() *arrivals {
	d.spareMu.Lock()
	defer d.spareMu.Unlock()
	a := d.spare
	if a == nil {
		return &arrivals{deferred: d}
	}
	d.spare = a.next
	return a
}

// giveBack makes arrivals available for another packet.
func (a *arrivals) giveBack() {
	clear(a.places)
	a.places = a.places[:0]
	d := a.deferred
	d.spareMu.Lock()
	defer d.spareMu.Unlock()
	a.next, d.spare = d.spare, a
}

// Answered copies the parts of a response to their places. Progress calls it.
func (a *arrivals) Answered(answer []byte) bool {
	defer a.giveBack()
	at := 0
	for i := range a.places {
		at += aggregate.Padded(a.places[i].bytes)
	}
	a.deferred.core.world.Copied(len(answer))
	if at != len(answer) {
		return false
	}
	for i := range a.places {
		n := a.places[i].bytes
		copy(bytesAt(a.places[i].to, n), answer)
		answer = answer[aggregate.Padded(n):]
	}
	return true
}

// Refused is called in place of Answered if there is no response.
func (a *arrivals) Refused() { a.giveBack() }
