package window

import (
	"context"
	"fmt"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// What is queued is planned, and carried out in the order of the plan: packed into packets,
// each of which is a message, or direct, behind what is packed. What is planned is kept until
// all of it has left, so that a call which its context cuts short is gone on with by the next.

// arrivals are where the parts of the answer to a packet go.
type arrivals struct {
	deferred *deferred
	places   []place
	next     *arrivals
}

// place is where so many bytes of an answer go.
type place struct {
	to    *byte
	bytes int
}

// carryOut sends what is queued. behind is what comes behind it. It is called
// with the mutex.
func (d *deferred) carryOut(ctx context.Context, behind scheduler.Behind) error {
	for {
		if d.step == len(d.plan.Steps) {
			if err := d.sendPacket(ctx); err != nil {
				return err
			}
			d.queue.Drop(d.planned)
			d.queue.EndRun()
			d.step, d.planned = 0, len(d.queue.Operations)
			d.lookUp()
			d.planner.Plan(d.queue.Operations, behind, &d.plan)
			d.final = -1
			if behind == scheduler.End {
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

// lookUp notes of which operations that are queued the card does not know the memory, and that they
// use it.
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

// drop forgets what was not sent.
func (d *deferred) drop() {
	d.queue.Drop(len(d.queue.Operations))
	d.step, d.planned, d.plan.Steps = 0, 0, d.plan.Steps[:0]
	d.unpack()
}

// direct sends an operation by RDMA, behind what is packed. final tells that its completion is
// waited for, which comes sooner than that of a message behind it.
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

// pack packs operations as one, of so many bytes. One that is longer than a packet it
// cuts: that is a put or a get. Of one that was cut short what is behind packed is left.
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

// packedAll counts operations of so many bytes that are packed.
func (d *deferred) packedAll(kind aggregate.Kind, operations, bytes int) {
	d.counts.packed.count(kind, operations, bytes)
	if kind != aggregate.Get {
		d.core.world.Copied(bytes)
	}
}

// wordBytes is the length of a word.
const wordBytes = 8

// packRun packs a run. Of one that is cut short what is behind packed is left.
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

// turn sends what is packed, and begins the next packet.
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

// place gives the place of an operation's operand, in the next packet if this has none.
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
	if shape.Answer() > 0 && d.arrivals == nil {
		d.arrivals = d.newArrivals()
	}
	return operand, nil
}

// sendPacket sends what is packed.
func (d *deferred) sendPacket(ctx context.Context) error { return d.sendPacketWith(ctx, nil) }

// sendPacketWith sends what is packed, with the operand that the packet ends with from where it is.
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

// giveBack is for the next packet.
func (a *arrivals) giveBack() {
	clear(a.places)
	a.places = a.places[:0]
	d := a.deferred
	d.spareMu.Lock()
	defer d.spareMu.Unlock()
	a.next, d.spare = d.spare, a
}

// Answered puts the parts of an answer where they go. It is called in progress.
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

// Refused is called in place of Answered where there is no answer.
func (a *arrivals) Refused() { a.giveBack() }
