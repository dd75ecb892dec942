package window

import (
	"context"
	"unsafe"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/scheduler"
)

// bytesAt is n bytes from an address on. Sound because an operation names the memory of a
// slice of so many bytes, which it keeps.
func bytesAt(at *byte, n int) []byte { return unsafe.Slice(at, n) }

// wordsAt is the bytes of an operation's operands.
func wordsAt(words *[4]uint64) []byte { return bytesOf(words[:]) }

func (v *view) putRemote(p *peer, origin unsafe.Pointer, bytes int, offset uint64) error {
	if bytes == 0 {
		return nil
	}
	o := scheduler.Operation{Kind: aggregate.Put, Bytes: bytes, Offset: offset, Origin: (*byte)(origin)}
	return p.deferred.add(&o)
}

func (v *view) getRemote(p *peer, result unsafe.Pointer, bytes int, offset uint64) error {
	if bytes == 0 {
		return nil
	}
	o := scheduler.Operation{Kind: aggregate.Get, Bytes: bytes, Offset: offset, Result: (*byte)(result)}
	return p.deferred.add(&o)
}

// accumulateRemote has an accumulate applied by its target. Operands that are not long are
// copied, longer ones sent, so they are the program's again; results are kept until they
// have come.
func (v *view) accumulateRemote(p *peer, op Op, given operands, offset uint64) error {
	if given.count == 0 || op == NoOp && given.result == nil {
		return nil
	}
	o := scheduler.Operation{Kind: aggregate.Accumulate, Op: op, Element: v.kind, Bytes: given.count << v.shift, Offset: offset, Result: (*byte)(given.result)}
	if given.result != nil {
		o.Kind = aggregate.Fetch
	}
	switch {
	case op == NoOp && o.Bytes <= p.deferred.most:
		return p.deferred.add(&o)
	case o.Bytes > min(longOperand, p.deferred.most):
		return p.deferred.stream(&o, given.origin)
	case o.Bytes > len(o.Value)*8:
		return p.deferred.addCopied(&o, memoryAt(given.origin, o.Bytes))
	}
	copy(wordsAt(&o.Value), memoryAt(given.origin, o.Bytes))
	return p.deferred.add(&o)
}

// stream sends a long accumulate, behind all that is queued, in pieces that the target
// combines while others come.
func (d *deferred) stream(o *scheduler.Operation, origin unsafe.Pointer) error {
	ctx := context.Background()
	if err := d.openHeld(ctx); err != nil {
		return err
	}
	defer d.mu.Unlock()
	if err := d.send(ctx, true); err != nil {
		return err
	}
	return d.ended(ctx, d.streamAll(ctx, o, origin))
}

func (d *deferred) streamAll(ctx context.Context, o *scheduler.Operation, origin unsafe.Pointer) error {
	most := d.most &^ 15
	shape := aggregate.Shape{Kind: o.Kind, Op: o.Op, Element: o.Element}
	for done := 0; done < o.Bytes; done += shape.Size {
		shape.Size = min(o.Bytes-done, most)
		operand, err := d.place(ctx, &shape, o.Offset+uint64(done))
		if err != nil {
			return err
		}
		if len(operand) > 0 {
			copy(operand, memoryAt(unsafe.Add(origin, done), shape.Size))
		}
		if o.Result != nil {
			d.arrivals.places = append(d.arrivals.places, place{(*byte)(unsafe.Add(unsafe.Pointer(o.Result), done)), shape.Size})
		}
	}
	return d.sendPacket(ctx)
}

// swapRemote has a CompareAndSwap done by its target.
func (v *view) swapRemote(p *peer, compare, swap, result unsafe.Pointer, offset uint64) error {
	size := 1 << v.shift
	o := scheduler.Operation{Kind: aggregate.Swap, Element: v.kind, Bytes: size, Offset: offset, Result: (*byte)(result)}
	value := wordsAt(&o.Value)
	copy(value[:size], memoryAt(compare, size))
	copy(value[size:], memoryAt(swap, size))
	return p.deferred.add(&o)
}

// viewFor is this rank's part as elements of a kind, for what messages ask of it.
func (s *server) viewFor(kind reduce.Kind) *view {
	if s.views[kind] == nil {
		s.views[kind] = viewOf(s.core, kind)
	}
	return s.views[kind]
}
