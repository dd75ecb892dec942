package world

import (
	"context"
	"fmt"
	"reflect"
	"sync"
)

// calls name the collectives in headers.
const (
	callBroadcast uint32 = iota + 1
	callGather
	callAllGather
	callScatter
	callAllToAll
	callReduce
)

var callNames = [...]string{"a call that is none", "Broadcast", "Gather", "AllGather", "Scatter", "AllToAll", "Reduce"}

func callName(call uint32) string {
	if call < uint32(len(callNames)) {
		return callNames[call]
	}
	return callNames[0]
}

// mismatch says how the message that came differs from the one that was due.
func mismatch(rank int, got, want *header) error {
	what, g, w := "length in bytes", any(got.length), any(want.length)
	switch {
	case got.call != want.call:
		what, g, w = "call", callName(got.call), callName(want.call)
	case got.number != want.number:
		what, g, w = "number of collectives so far", got.number, want.number
	case got.element != want.element:
		what, g, w = "element size", got.element, want.element
	case got.root != want.root:
		what, g, w = "root", got.root, want.root
	}
	return fmt.Errorf("%w: the %s of rank %d is %v, here it is %v", ErrMismatch, what, rank, g, w)
}

// a round is one collective call of this rank.
type round struct {
	w      *World
	op     string
	header header
}

// begin starts a collective on elements of T. It is followed by end.
func begin[T any](w *World, op string, call uint32, root int) (*round, error) {
	size, err := elementSize[T]()
	if err != nil {
		return nil, fmt.Errorf("world: %s: %w", op, err)
	}
	if root < 0 || root >= w.size {
		return nil, fmt.Errorf("world: %s: %w: root %d, allowed are 0 to %d", op, ErrArgument, root, w.size-1)
	}
	if err := w.enter(op); err != nil {
		return nil, err
	}
	w.post.calls++
	return &round{w, op, header{call: call, number: w.post.calls, element: uint32(size), root: uint32(root)}}, nil
}

func (r *round) end() { r.w.collective.Unlock() }

// exchange sends out to rank to and receives in from rank from; a negative rank is
// nobody.
func (r *round) exchange(ctx context.Context, to int, out []byte, from int, in []byte) error {
	var sent, received *parcel
	if to >= 0 {
		sent = &parcel{rank: to, header: r.sized(out), data: out}
	}
	if from >= 0 {
		received = &parcel{rank: from, header: r.sized(in), data: in}
	}
	return r.w.post.exchange(ctx, r.op, sent, received)
}

func (r *round) sized(data []byte) header {
	h := r.header
	h.length = uint64(len(data))
	return h
}

var elementSizes sync.Map

// elementSize is the size of T in bytes, or says why T cannot cross between ranks.
func elementSize[T any]() (int, error) {
	t := reflect.TypeFor[T]()
	if size, ok := elementSizes.Load(t); ok {
		return size.(int), nil
	}
	if path := pointerIn(t); path != "" {
		return 0, fmt.Errorf("%w: element type %v has a pointer (%s); allowed are numbers, booleans, and arrays and structs of them", ErrArgument, t, path)
	}
	elementSizes.Store(t, int(t.Size()))
	return int(t.Size()), nil
}

// pointerIn names the part of t that holds a pointer, empty if none does.
func pointerIn(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return ""
		}
		return pointerIn(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if part := pointerIn(t.Field(i).Type); part != "" {
				return t.Field(i).Name + " " + part
			}
		}
		return ""
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func, reflect.Interface, reflect.Slice, reflect.String:
		return t.String()
	}
	return ""
}

// lengths checks that out holds n times in.
func lengths(op string, in, out, n int) error {
	if out != in*n {
		return fmt.Errorf("world: %s: %w: out has %d elements, must have %d, %d for each of %d ranks", op, ErrArgument, out, in*n, in, n)
	}
	return nil
}

// Broadcast copies root's buffer into that of every rank, along a binomial tree.
// All buffers have the same length.
func Broadcast[T any](ctx context.Context, w *World, root int, buffer []T) error {
	r, err := begin[T](w, "Broadcast", callBroadcast, root)
	if err != nil {
		return err
	}
	defer r.end()
	return r.broadcast(ctx, root, bytesOf(buffer))
}

func (r *round) broadcast(ctx context.Context, root int, data []byte) error {
	size := r.w.size
	me := (r.w.rank - root + size) % size
	rank := func(relative int) int { return (relative + root) % size }
	distance := 1
	for ; distance < size && me&distance == 0; distance *= 2 {
	}
	if me != 0 {
		if err := r.exchange(ctx, -1, nil, rank(me-distance), data); err != nil {
			return err
		}
	}
	for distance /= 2; distance > 0; distance /= 2 {
		if me+distance < size {
			if err := r.exchange(ctx, rank(me+distance), data, -1, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// Gather collects the ranks' in, of equal lengths, in the order of ranks in root's
// out, which is Size times as long. Other ranks' out is not looked at.
func Gather[T any](ctx context.Context, w *World, root int, in, out []T) error {
	if w.rank == root {
		if err := lengths("Gather", len(in), len(out), w.size); err != nil {
			return err
		}
	}
	r, err := begin[T](w, "Gather", callGather, root)
	if err != nil {
		return err
	}
	defer r.end()
	if w.rank != root {
		return r.exchange(ctx, root, bytesOf(in), -1, nil)
	}
	for rank := range w.size {
		part := out[rank*len(in):][:len(in)]
		if rank == root {
			copy(part, in)
		} else if err := r.exchange(ctx, -1, nil, rank, bytesOf(part)); err != nil {
			return err
		}
	}
	return nil
}

// Scatter gives each rank its part, in the order of ranks, of root's in, which is
// Size times as long as each out. Other ranks' in is not looked at.
func Scatter[T any](ctx context.Context, w *World, root int, in, out []T) error {
	if w.rank == root {
		if err := lengths("Scatter", len(out), len(in), w.size); err != nil {
			return err
		}
	}
	r, err := begin[T](w, "Scatter", callScatter, root)
	if err != nil {
		return err
	}
	defer r.end()
	if w.rank != root {
		return r.exchange(ctx, -1, nil, root, bytesOf(out))
	}
	for rank := range w.size {
		part := in[rank*len(out):][:len(out)]
		if rank == root {
			copy(out, part)
		} else if err := r.exchange(ctx, rank, bytesOf(part), -1, nil); err != nil {
			return err
		}
	}
	return nil
}

// AllGather collects the ranks' in, of equal lengths, in the order of ranks in every
// rank's out, which is Size times as long. It takes log2(Size) rounds (Bruck).
func AllGather[T any](ctx context.Context, w *World, in, out []T) error {
	if err := lengths("AllGather", len(in), len(out), w.size); err != nil {
		return err
	}
	r, err := begin[T](w, "AllGather", callAllGather, 0)
	if err != nil {
		return err
	}
	defer r.end()
	// blocks holds the parts of the ranks from this one on; each round doubles
	// how many there are.
	blocks := make([]T, len(out))
	copy(blocks, in)
	n := len(in)
	for have := 1; have < w.size; have *= 2 {
		more := min(have, w.size-have)
		to, from := (w.rank-have+w.size)%w.size, (w.rank+have)%w.size
		if err := r.exchange(ctx, to, bytesOf(blocks[:more*n]), from, bytesOf(blocks[have*n:][:more*n])); err != nil {
			return err
		}
	}
	ahead := copy(out[w.rank*n:], blocks)
	copy(out, blocks[ahead:])
	return nil
}

// AllToAll sends part r of in to rank r and collects what all sent to this rank, in
// the order of ranks, in out, which is as long.
func AllToAll[T any](ctx context.Context, w *World, in, out []T) error {
	if len(in) != len(out) || len(in)%w.size != 0 {
		return fmt.Errorf("world: AllToAll: %w: in has %d elements, out %d; both must be the same multiple of %d ranks", ErrArgument, len(in), len(out), w.size)
	}
	r, err := begin[T](w, "AllToAll", callAllToAll, 0)
	if err != nil {
		return err
	}
	defer r.end()
	n := len(in) / w.size
	part := func(s []T, rank int) []T { return s[rank*n:][:n] }
	copy(part(out, w.rank), part(in, w.rank))
	for distance := 1; distance < w.size; distance++ {
		to, from := (w.rank+distance)%w.size, (w.rank-distance+w.size)%w.size
		if err := r.exchange(ctx, to, bytesOf(part(in, to)), from, bytesOf(part(out, from))); err != nil {
			return err
		}
	}
	return nil
}

// Reduce combines the ranks' in element by element into root's out, which is as
// long; other ranks' out is not looked at. combine must be associative and
// commutative.
func Reduce[T any](ctx context.Context, w *World, root int, in, out []T, combine func(a, b T) T) error {
	if w.rank == root && len(out) != len(in) {
		return lengths("Reduce", len(in), len(out), 1)
	}
	r, err := begin[T](w, "Reduce", callReduce, root)
	if err != nil {
		return err
	}
	defer r.end()
	total, err := reduceTo(ctx, r, root, in, combine)
	if w.rank == root && err == nil {
		copy(out, total)
	}
	return err
}

// reduceTo combines along a binomial tree and returns, at root, the total.
func reduceTo[T any](ctx context.Context, r *round, root int, in []T, combine func(a, b T) T) ([]T, error) {
	size := r.w.size
	me := (r.w.rank - root + size) % size
	total := append([]T(nil), in...)
	other := make([]T, len(in))
	for distance := 1; distance < size; distance *= 2 {
		if me&distance != 0 {
			return total, r.exchange(ctx, (me-distance+root)%size, bytesOf(total), -1, nil)
		}
		if me+distance >= size {
			continue
		}
		if err := r.exchange(ctx, -1, nil, (me+distance+root)%size, bytesOf(other)); err != nil {
			return nil, err
		}
		for i, v := range other {
			total[i] = combine(total[i], v)
		}
	}
	return total, nil
}

// AllReduce is Reduce whose result every rank gets in out.
func AllReduce[T any](ctx context.Context, w *World, in, out []T, combine func(a, b T) T) error {
	if err := lengths("AllReduce", len(in), len(out), 1); err != nil {
		return err
	}
	r, err := begin[T](w, "AllReduce", callReduce, 0)
	if err != nil {
		return err
	}
	defer r.end()
	total, err := reduceTo(ctx, r, 0, in, combine)
	if err != nil {
		return err
	}
	if w.rank == 0 {
		copy(out, total)
	}
	return r.broadcast(ctx, 0, bytesOf(out))
}
