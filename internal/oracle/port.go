package oracle

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A port is a window viewed as elements of one kind.
type port interface {
	// issue makes the call of an operation, with its own buffers.
	issue(s *Step) (flight, error)
	// store and load access the rank's own part.
	store(s *Step)
	load(s *Step) []byte
}

// A flight is an issued operation. Its buffers belong to the library until it is settled.
type flight interface {
	// request returns the request of an operation that has one.
	request() window.Request
	// settle returns what was read, as bytes, and overwrites the buffers. A second call returns nil.
	settle() ([]byte, error)
	// intact reports whether the buffers have not been written to since.
	intact() bool
}

// A codec converts elements of a Go type to bits and back.
type codec[T window.Element] struct {
	kind reduce.Kind
	of   func(bits) T
	bits func(T) bits
}

// typed is the port of T. It does not embed the window, because the compiler would instantiate all its methods again
// for each kind.
type typed[T window.Element] struct {
	win   *window.Window[T]
	codec *codec[T]
}

// guard is the number of elements on each side of a buffer. poison fills them, and buffers that were settled.
const (
	guard  = 2
	poison = 0x5a
)

// flown is a flight with its buffers. result has guards at its ends. touched are the elements between them to which
// the operation writes.
type flown[T window.Element] struct {
	*codec[T]
	step           *Step
	origin, result []T
	asked          window.Request
	settled        bool
}

func (p *typed[T]) issue(s *Step) (flight, error) {
	f := &flown[T]{codec: p.codec, step: s}
	bad := p.codec.of(number(p.codec.kind, poison))
	n := s.Count
	if s.Call.layouts() {
		n = s.From.extent()
	} else if s.Call == FetchAndOp || s.Call == CompareAndSwap {
		n = 1
	}
	if s.Call.reads() {
		f.result = make([]T, guard+n+guard)
		for i := range f.result {
			f.result[i] = bad
		}
	}
	switch s.Call {
	case Get, RGet, GetLayout:
	case PutLayout, AccumulateLayout, AccumulateEach:
		f.origin = make([]T, n)
		operands := 0
		s.From.each(func(offset, n int) {
			for i := range n {
				f.origin[offset+i] = p.codec.of(operand(s, operands))
				operands++
			}
		})
	default:
		f.origin = make([]T, n)
		for i := range f.origin {
			f.origin[i] = p.codec.of(operand(s, i))
		}
	}
	var err error
	f.asked, err = p.call(s, f)
	return f, err
}

// call makes the call of an operation.
func (p *typed[T]) call(s *Step, f *flown[T]) (request window.Request, err error) {
	var result []T
	var one *T
	if f.result != nil {
		result = f.result[guard : len(f.result)-guard]
		if len(result) > 0 && !s.Nil {
			one = &result[0]
		}
	}
	switch s.Call {
	case Put:
		err = p.win.Put(f.origin, s.Target, s.At)
	case RPut:
		request, err = p.win.RPut(f.origin, s.Target, s.At)
	case PutNotify:
		err = p.win.PutNotify(f.origin, s.Target, s.At, s.Slot)
	case PutLayout:
		err = p.win.PutLayout(f.origin, s.From.layout(), s.Target, s.At, s.To.layout())
	case Get:
		err = p.win.Get(result, s.Target, s.At)
	case RGet:
		request, err = p.win.RGet(result, s.Target, s.At)
	case GetLayout:
		err = p.win.GetLayout(result, s.From.layout(), s.Target, s.At, s.To.layout())
	case Accumulate:
		err = p.win.Accumulate(s.Op, f.origin, s.Target, s.At)
	case RAccumulate:
		request, err = p.win.RAccumulate(s.Op, f.origin, s.Target, s.At)
	case AccumulateLayout:
		err = p.win.AccumulateLayout(s.Op, f.origin, s.From.layout(), s.Target, s.At, s.To.layout())
	case AccumulateEach:
		var displacements []int
		s.touches(func(at, n, _ int) {
			for i := range n {
				displacements = append(displacements, at+i)
			}
		})
		err = p.win.AccumulateEach(s.Op, f.origin, s.Target, displacements)
	case GetAccumulate:
		if s.Op == window.NoOp && s.Fill%2 == 1 {
			f.origin = nil
		}
		err = p.win.GetAccumulate(s.Op, f.origin, result, s.Target, s.At)
	case RGetAccumulate:
		request, err = p.win.RGetAccumulate(s.Op, f.origin, result, s.Target, s.At)
	case FetchAndOp:
		err = p.win.FetchAndOp(s.Op, f.origin[0], one, s.Target, s.At)
	case CompareAndSwap:
		err = p.win.CompareAndSwap(p.codec.of(number(p.codec.kind, s.Compare)), f.origin[0], one, s.Target, s.At)
	}
	return request, err
}

func (p *typed[T]) store(s *Step) {
	for i := range s.Count {
		p.win.Local()[s.At+i] = p.codec.of(operand(s, i))
	}
}

func (p *typed[T]) load(s *Step) []byte { return p.codec.encode(p.win.Local()[s.At : s.At+s.Count]) }

// encode returns elements as bytes.
func (c *codec[T]) encode(elements []T) []byte {
	size := c.kind.Size()
	b := make([]byte, len(elements)*size)
	for i, v := range elements {
		write(c.kind, b[i*size:], c.bits(v))
	}
	return b
}

func (f *flown[T]) request() window.Request { return f.asked }

func (f *flown[T]) settle() ([]byte, error) {
	if f.settled {
		return nil, nil
	}
	f.settled = true
	bad := f.of(number(f.kind, poison))
	for i := range f.origin {
		f.origin[i] = bad
	}
	if f.result == nil {
		return nil, nil
	}
	var read []T
	inner := f.result[guard : len(f.result)-guard]
	switch {
	case f.step.Refused:
	case f.step.Call == GetLayout:
		f.step.From.each(func(offset, n int) {
			read = append(read, inner[offset:offset+n]...)
			for i := range n {
				inner[offset+i] = bad
			}
		})
	default:
		read = append(read, inner...)
		for i := range inner {
			inner[i] = bad
		}
	}
	b := f.encode(read)
	if !f.intact() {
		return nil, fmt.Errorf("oracle: %q wrote to elements beside its result: %w", f.step.String(), errOverrun)
	}
	return b, nil
}

var errOverrun = errors.New("a buffer was overrun")

func (f *flown[T]) intact() bool {
	bad := number(f.kind, poison)
	for _, buffer := range [][]T{f.origin, f.result} {
		for _, v := range buffer {
			if f.bits(v) != bad {
				return false
			}
		}
	}
	return true
}

// A maker makes windows of a kind, and ports to windows that are viewed as it.
type maker interface {
	// allocate and create make a window of zero elements.
	allocate(ctx context.Context, w *world.World, count int, options []window.Option) (bytewise, error)
	create(ctx context.Context, w *world.World, count int, options []window.Option) (bytewise, error)
	port(win bytewise) (port, error)
}

// bytewise is a window viewed as bytes.
type bytewise = *window.Window[uint8]

func (c *codec[T]) allocate(ctx context.Context, w *world.World, count int, options []window.Option) (bytewise, error) {
	win, err := window.Allocate[T](ctx, w, count, options...)
	if err != nil {
		return nil, err
	}
	return window.View[uint8](win)
}

func (c *codec[T]) create(ctx context.Context, w *world.World, count int, options []window.Option) (bytewise, error) {
	win, err := window.Create(ctx, w, make([]T, count), options...)
	if err != nil {
		return nil, err
	}
	return window.View[uint8](win)
}

func (c *codec[T]) port(win bytewise) (port, error) {
	view, err := window.View[T](win)
	if err != nil {
		return nil, err
	}
	return &typed[T]{view, c}, nil
}

// makers are the makers of all kinds.
var makers = [reduce.Kinds]maker{
	integer[int8](reduce.Int8), integer[int16](reduce.Int16), integer[int32](reduce.Int32), integer[int64](reduce.Int64),
	integer[uint8](reduce.Uint8), integer[uint16](reduce.Uint16), integer[uint32](reduce.Uint32), integer[uint64](reduce.Uint64),
	&codec[float32]{
		reduce.Float32,
		func(b bits) float32 { return math.Float32frombits(uint32(b.lo)) },
		func(v float32) bits { return bits{lo: uint64(math.Float32bits(v))} },
	},
	&codec[float64]{
		reduce.Float64,
		func(b bits) float64 { return math.Float64frombits(b.lo) },
		func(v float64) bits { return bits{lo: math.Float64bits(v)} },
	},
	&codec[complex64]{reduce.Complex64, toComplex64, ofComplex64},
	&codec[complex128]{reduce.Complex128, toComplex128, ofComplex128},
}

func integer[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](kind reduce.Kind) *codec[T] {
	mask := uint64(math.MaxUint64)
	if size := kind.Size(); size < 8 {
		mask = 1<<(8*size) - 1
	}
	return &codec[T]{kind, func(b bits) T { return T(b.lo) }, func(v T) bits { return bits{lo: uint64(v) & mask} }}
}
