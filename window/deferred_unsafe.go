package window

import (
	"context"
	"unsafe"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// bytesAt returns n bytes from an address on. Sound because an operation has the address of a slice of as many bytes,
// and keeps it.
func bytesAt(at *byte, n int) []byte { return unsafe.Slice(at, n) }

// wordsAt returns the bytes of an operation's operands.
func wordsAt(words *[4]uint64) []byte { return bytesOf(words[:]) }

// wordAt returns the word of an element that an atomic reads. Sound because such an element is an int64 or uint64.
func wordAt(at *byte) *uint64 { return (*uint64)(unsafe.Pointer(at)) }

// put queues a put.
func (d *deferred) put(origin unsafe.Pointer, bytes int, offset uint64) error {
	o, err := d.join(aggregate.Put, bytes)
	if err != nil {
		return err
	}
	o.Offset, o.Origin = offset, (*byte)(origin)
	return d.queued()
}

// get queues a get.
func (d *deferred) get(result unsafe.Pointer, bytes int, offset uint64) error {
	o, err := d.join(aggregate.Get, bytes)
	if err != nil {
		return err
	}
	o.Offset, o.Result = offset, (*byte)(result)
	return d.queued()
}

// accumulateRemote has the target apply an accumulate. Short operands are copied and long ones sent, so they belong to
// the program when it returns. Results are kept until they have arrived.
func (v *view) accumulateRemote(p *peer, op Op, given operands, offset uint64) error {
	if given.count == 0 || op == NoOp && given.result == nil {
		return nil
	}
	d, kind, bytes := p.deferred, aggregate.Accumulate, given.count<<v.shift
	if given.result != nil {
		kind = aggregate.Fetch
	}
	if v.cards != cardsUnused {
		return v.accumulateByCard(d, kind, op, given, offset)
	}
	if kind == aggregate.Accumulate && given.count == 1 && bytes <= wordBytes {
		return d.accumulate(op, v.kind, bytes, offset, wordOf(given.origin, v.shift))
	}
	short := bytes <= len(scheduler.Operation{}.Value)*8 || op == NoOp && bytes <= d.most
	if !short {
		return v.accumulateLong(d, &scheduler.Operation{Kind: kind, Op: op, Element: v.kind, Bytes: bytes, Offset: offset, Result: (*byte)(given.result)}, given.origin)
	}
	o, err := d.join(kind, bytes)
	if err != nil {
		return err
	}
	o.Op, o.Element, o.Offset, o.Result = op, v.kind, offset, (*byte)(given.result)
	switch {
	case op == NoOp:
	case v.shift == 3 && given.count == 1:
		o.Value[0] = *(*uint64)(given.origin)
	default:
		copy(wordsAt(&o.Value), memoryAt(given.origin, bytes))
	}
	return d.queued()
}

// wordOf returns an element of 1 << shift bytes, at most a word, followed by zeros.
func wordOf(element unsafe.Pointer, shift uint8) (word uint64) {
	copyElement(unsafe.Pointer(&word), element, shift)
	return word
}

// accumulateByCard has a card apply each element of an accumulate. The elements are words. For NoOp the card adds 0.
func (v *view) accumulateByCard(d *deferred, kind aggregate.Kind, op Op, given operands, offset uint64) error {
	for {
		o, err := d.join(kind, 1<<v.shift)
		if err != nil {
			return err
		}
		o.Op, o.Element, o.Offset, o.Result = op, v.kind, offset, (*byte)(given.result)
		if op != NoOp {
			o.Value[0] = *(*uint64)(given.origin)
		}
		if err := d.queued(); err != nil || given.count == 1 {
			return err
		}
		given.advance(1, v.shift)
		offset += 1 << v.shift
	}
}

// accumulateLong is accumulateRemote of an operand that has no room in the queue's record.
func (v *view) accumulateLong(d *deferred, o *scheduler.Operation, origin unsafe.Pointer) error {
	if o.Bytes > min(longOperand, d.most) {
		return d.stream(o, origin)
	}
	return d.addCopied(o, memoryAt(origin, o.Bytes))
}

// stream sends a long accumulate, after all that is queued, in pieces. The target applies a piece while later ones
// arrive.
func (d *deferred) stream(o *scheduler.Operation, origin unsafe.Pointer) error {
	ctx := context.Background()
	if err := d.openHeld(ctx); err != nil {
		return err
	}
	defer d.mu.Unlock()
	left := 0
	rest := func() (err error) {
		left, err = d.streamFrom(ctx, left, o, origin)
		return err
	}
	err := rest()
	if left > 0 && job.Is(err, verbs.ErrShortage) {
		// If the program called again, the target would apply the pieces that have left once more.
		err = throughShortage(rest)
	}
	return d.ended(ctx, err)
}

// streamFrom sends a long accumulate without its first done bytes. It returns the number of bytes that have left.
// Pieces of a multiple of 8 bytes are sent from where they are, without a copy.
func (d *deferred) streamFrom(ctx context.Context, done int, o *scheduler.Operation, origin unsafe.Pointer) (left int, err error) {
	defer func() {
		if err != nil {
			d.unpack()
		}
	}()
	left = done
	blocks := d.link.Blocks(o.Bytes-done, d.most)
	shape := aggregate.Shape{Kind: o.Kind, Op: o.Op, Element: o.Element}
	for ; done < o.Bytes; done += shape.Size {
		shape.Size = blocks.Next()
		operand, err := d.place(ctx, &shape, o.Offset+uint64(done))
		if err != nil {
			return left, err
		}
		if d.packet.Operations() == 1 {
			// All earlier pieces have left.
			left = done
		}
		if o.Result != nil {
			d.arrivals.places = append(d.arrivals.places, place{(*byte)(unsafe.Add(unsafe.Pointer(o.Result), done)), shape.Size})
		}
		var more []byte
		switch {
		case len(operand) == 0:
		case shape.Size%8 == 0:
			more = memoryAt(unsafe.Add(origin, done), shape.Size)
		default:
			copy(operand, memoryAt(unsafe.Add(origin, done), shape.Size))
			d.core.world.Copied(shape.Size)
		}
		if err := d.sendPacketWith(ctx, more); err != nil {
			return left, err
		}
		if done+shape.Size < o.Bytes {
			// The last piece leaves with what follows it.
			d.link.Post()
		}
	}
	return o.Bytes, nil
}

// swapRemote has the target apply a CompareAndSwap.
func (v *view) swapRemote(p *peer, compare, swap, result unsafe.Pointer, offset uint64) error {
	size := 1 << v.shift
	o, err := p.deferred.join(aggregate.Swap, size)
	if err != nil {
		return err
	}
	o.Element, o.Offset, o.Result = v.kind, offset, (*byte)(result)
	value := wordsAt(&o.Value)
	copy(value[:size], memoryAt(compare, size))
	copy(value[size:], memoryAt(swap, size))
	return p.deferred.queued()
}

// viewFor returns this rank's part as elements of a kind, for operations of messages.
func (s *server) viewFor(kind reduce.Kind) *view {
	if s.views[kind] == nil {
		s.views[kind] = viewOf(s.core, kind)
	}
	return s.views[kind]
}
