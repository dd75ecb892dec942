package job

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/tuning"
)

// The collectives with a root go along a binomial tree, but for long Broadcasts and Reduces:
// counted from the root, the parent of a rank has its lowest bit less. So every rank talks with no more than
// log2(Size) others on each side, whatever the roots, and as many connections are
// all that it ever has for them.

// Broadcast copies root's buffer into the buffer of every rank.
func Broadcast[T any](ctx context.Context, w *World, root int, buffer []T) error {
	if err := checkRoot(w, "Broadcast", root); err != nil {
		return err
	}
	r, err := begin[T](ctx, w, "Broadcast", callBroadcast, root, len(buffer))
	if err != nil {
		return err
	}
	defer r.leave()
	data := bytesOf(buffer)
	switch {
	case w.onBoard(len(data)):
		err = r.broadcastOnBoard(ctx, root, data)
	case w.broadcastWay(len(data)) == tuning.Long:
		err = r.broadcastLong(ctx, root, data)
	default:
		err = r.broadcast(ctx, root, data)
	}
	return r.end(err)
}

// broadcastLong scatters parts of the data, which go around all ranks then.
func (r *round) broadcastLong(ctx context.Context, root int, data []byte) error {
	size, me := r.w.size, r.relative(r.w.rank, root)
	length := (len(data) + size - 1) / size
	parts := func(first, n int) []byte {
		return data[min(first*length, len(data)):min((first+n)*length, len(data))]
	}
	distance := below(me, size)
	if me != 0 {
		if err := r.receive(ctx, r.absolute(me-distance, root), parts(me, distance)); err != nil {
			return err
		}
	}
	for distance /= 2; distance > 0; distance /= 2 {
		if me+distance < size {
			if err := r.send(ctx, r.absolute(me+distance, root), parts(me+distance, distance)); err != nil {
				return err
			}
		}
	}
	return r.circulate(ctx, me, root, func(i int) []byte { return parts(i, 1) })
}

// circulate has each part of which one rank has each, counted from root, around a ring, so that
// all have all.
func (r *round) circulate(ctx context.Context, me, root int, parts func(i int) []byte) error {
	size := r.w.size
	next, last := r.absolute(me+1, root), r.absolute(me+size-1, root)
	for step := range size - 1 {
		if _, err := r.exchange(ctx, next, parts((me-step+size)%size), last, parts((me-step-1+size)%size)); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) broadcast(ctx context.Context, root int, data []byte) error {
	size, me := r.w.size, r.relative(r.w.rank, root)
	distance := below(me, size)
	if me != 0 {
		if err := r.receive(ctx, r.absolute(me-distance, root), data); err != nil {
			return err
		}
	}
	for distance /= 2; distance > 0; distance /= 2 {
		if me+distance < size {
			if err := r.send(ctx, r.absolute(me+distance, root), data); err != nil {
				return err
			}
		}
	}
	return nil
}

// below is how far the parent of me is, for the root the first power of two that is
// not less than size. With the ranks after it that are nearer, me is the root of a
// tree of its own.
func below(me, size int) int {
	distance := 1
	for distance < size && me&distance == 0 {
		distance *= 2
	}
	return distance
}

// Gather collects the in of all ranks, in the order of ranks, in root's out.
func Gather[T any](ctx context.Context, w *World, root int, in, out []T) error {
	if err := checkRoot(w, "Gather", root); err != nil {
		return err
	}
	if w.rank == root {
		if err := checkParts("Gather", "out", len(out), len(in), w.size); err != nil {
			return err
		}
	}
	r, err := begin[T](ctx, w, "Gather", callGather, root, len(in))
	if err != nil {
		return err
	}
	defer r.leave()
	return r.end(gather(ctx, r, root, in, out))
}

func gather[T any](ctx context.Context, r *round, root int, in, out []T) error {
	size, me, n := r.w.size, r.relative(r.w.rank, root), len(in)
	mine := min(below(me, size), size-me)
	parts := in
	switch {
	case mine == 1 && me != 0:
	case r.w.rank == root && root == 0:
		parts = out
	default:
		parts = scratch[T](r, mine*n)
	}
	if (mine > 1 || me == 0) && !r.away() {
		relocate(r, parts, in)
	}
	for distance := 1; distance < size; distance *= 2 {
		if me&distance != 0 {
			return r.send(ctx, r.absolute(me-distance, root), bytesOf(parts[:mine*n]))
		}
		if me+distance < size {
			theirs := span(parts, n, distance, min(distance, size-me-distance))
			if err := r.receive(ctx, r.absolute(me+distance, root), bytesOf(theirs)); err != nil {
				return err
			}
		}
	}
	if root != 0 {
		// parts begin with root's.
		behind := relocate(r, out[root*n:], parts)
		relocate(r, out, parts[behind:])
	}
	return nil
}

// Scatter gives each rank its part of root's in.
func Scatter[T any](ctx context.Context, w *World, root int, in, out []T) error {
	if err := checkRoot(w, "Scatter", root); err != nil {
		return err
	}
	if w.rank == root {
		if err := checkParts("Scatter", "in", len(in), len(out), w.size); err != nil {
			return err
		}
	}
	r, err := begin[T](ctx, w, "Scatter", callScatter, root, len(out))
	if err != nil {
		return err
	}
	defer r.leave()
	return r.end(scatter(ctx, r, root, in, out))
}

func scatter[T any](ctx context.Context, r *round, root int, in, out []T) error {
	size, me, n := r.w.size, r.relative(r.w.rank, root), len(out)
	distance := below(me, size)
	mine := min(distance, size-me)
	parts := out
	switch {
	case me == 0 && root == 0:
		parts = in
	case me == 0:
		if parts = scratch[T](r, size*n); !r.away() {
			ahead := relocate(r, parts, in[root*n:])
			relocate(r, parts[ahead:], in[:root*n])
		}
	case mine > 1:
		parts = scratch[T](r, mine*n)
	}
	if me != 0 {
		if err := r.receive(ctx, r.absolute(me-distance, root), bytesOf(parts[:mine*n])); err != nil {
			return err
		}
	}
	for distance /= 2; distance > 0; distance /= 2 {
		if me+distance < size {
			theirs := span(parts, n, distance, min(distance, size-me-distance))
			if err := r.send(ctx, r.absolute(me+distance, root), bytesOf(theirs)); err != nil {
				return err
			}
		}
	}
	relocate(r, out, parts[:n])
	return nil
}

// Reduce combines the in of all ranks element by element into root's out.
func Reduce[T any](ctx context.Context, w *World, root int, in, out []T, combine func(a, b T) T) error {
	by, err := byFunction(w, "Reduce", combine)
	if err != nil {
		return err
	}
	return reduceBy(ctx, w, "Reduce", root, in, out, by)
}

func reduceBy[T any](ctx context.Context, w *World, op string, root int, in, out []T, by operation[T]) error {
	if err := checkRoot(w, op, root); err != nil {
		return err
	}
	if w.rank == root && len(out) != len(in) {
		return sameLength(op, len(in), len(out))
	}
	r, err := begin[T](ctx, w, op, by.called(callReduce), root, len(in))
	if err != nil {
		return err
	}
	defer r.leave()
	way := reduceInTree[T]
	if w.reduceWay(len(bytesOf(in))) == tuning.Long {
		way = reduceLong[T]
	}
	total, err := way(ctx, r, root, in, by)
	if w.rank == root && err == nil {
		relocate(r, out, total)
	}
	return r.end(err)
}

// AllReduce combines the in of all ranks element by element into the out of every rank.
func AllReduce[T any](ctx context.Context, w *World, in, out []T, combine func(a, b T) T) error {
	by, err := byFunction(w, "AllReduce", combine)
	if err != nil {
		return err
	}
	return allReduceBy(ctx, w, "AllReduce", in, out, by)
}

func allReduceBy[T any](ctx context.Context, w *World, op string, in, out []T, by operation[T]) error {
	if len(out) != len(in) {
		return sameLength(op, len(in), len(out))
	}
	r, err := begin[T](ctx, w, op, by.called(callAllReduce), 0, len(in))
	if err != nil {
		return err
	}
	defer r.leave()
	if w.atTable(len(bytesOf(in))) {
		return r.end(addAtTable(ctx, r, in, out, by))
	}
	if way := w.allReduceWay(len(bytesOf(in))); way != tuning.Plain {
		return r.end(allReduce(ctx, r, in, out, by, way))
	}
	total, err := reduceInTree(ctx, r, 0, in, by)
	if err == nil {
		if w.rank == 0 && !r.away() {
			relocate(r, out, total)
		}
		err = r.broadcast(ctx, 0, bytesOf(out))
	}
	return r.end(err)
}

func sameLength(op string, in, out int) error {
	return fmt.Errorf("world: %s: %w: out has %s, must have %d as in has", op, ErrArgument, errtext.Count(out, "element"), in)
}

// reduceInTree combines along the tree and returns, at root, the total.
func reduceInTree[T any](ctx context.Context, r *round, root int, in []T, by operation[T]) ([]T, error) {
	size, me, n := r.w.size, r.relative(r.w.rank, root), len(in)
	memory := scratch[T](r, 2*n)
	total, other := memory[:n], memory[n:]
	if !r.away() {
		relocate(r, total, in)
	}
	for distance := 1; distance < size; distance *= 2 {
		if me&distance != 0 {
			return total, r.send(ctx, r.absolute(me-distance, root), bytesOf(total))
		}
		if me+distance >= size {
			continue
		}
		now, err := r.exchange(ctx, nobody, nil, r.absolute(me+distance, root), bytesOf(other))
		if err != nil {
			return nil, err
		}
		if now {
			by.add(total, other, true)
		}
	}
	return total, nil
}
