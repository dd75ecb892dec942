package job

import (
	"context"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/tuning"
)

// AllGather collects the in of all ranks, in the order of ranks, in the out of every rank.
func AllGather[T any](ctx context.Context, w *World, in, out []T) error {
	if err := made(w, "AllGather"); err != nil {
		return err
	}
	if err := checkParts("AllGather", "out", len(out), len(in), w.size); err != nil {
		return err
	}
	return allGatherIn(ctx, w, "AllGather", callAllGather, in, out)
}

// GatherForWindow is AllGather within a call of package window that makes a window, which errors name: window.Allocate or window.Create.
// The call log takes both for one call: package window compares them, and every rank gets the error.
func GatherForWindow[T any](ctx context.Context, w *World, call string, in, out []T) error {
	return allGatherIn(ctx, w, call, callWindow, in, out)
}

func allGatherIn[T any](ctx context.Context, w *World, op string, call uint32, in, out []T) error {
	r, err := begin[T](ctx, w, op, call, 0, len(in))
	if err != nil {
		return err
	}
	defer r.leave()
	if w.allGatherWay(len(bytesOf(in))) == tuning.Long {
		if !r.away() {
			relocate(r, span(out, len(in), w.rank, 1), in)
		}
		return r.end(r.circulate(ctx, w.rank, 0, func(i int) []byte { return bytesOf(span(out, len(in), i, 1)) }))
	}
	return r.end(allGather(ctx, r, in, out))
}

func allGather[T any](ctx context.Context, r *round, in, out []T) error {
	size, me, n := r.w.size, r.w.rank, len(in)
	// parts are those of the ranks from this one on; each exchange doubles how
	// many there are.
	parts := scratch[T](r, len(out))
	if !r.away() {
		relocate(r, parts, in)
	}
	for have := 1; have < size; have *= 2 {
		more := min(have, size-have)
		to, from := (me-have+size)%size, (me+have)%size
		if _, err := r.exchange(ctx, to, bytesOf(parts[:more*n]), from, bytesOf(span(parts, n, have, more))); err != nil {
			return err
		}
	}
	ahead := relocate(r, out[me*n:], parts)
	relocate(r, out, parts[ahead:])
	return nil
}

// pairwiseRanks is the most ranks that talk with each other one by one in AllToAll, if their parts
// are not short.
// More would need too many connections.
const pairwiseRanks = 16

// AllToAll sends part r of in to rank r, and collects the parts for this rank in out.
func AllToAll[T any](ctx context.Context, w *World, in, out []T) error {
	if err := made(w, "AllToAll"); err != nil {
		return err
	}
	if len(in) != len(out) || len(in)%w.size != 0 {
		return fmt.Errorf("world: AllToAll: %w: in has %s, out %d; both must be the same multiple of %s", ErrArgument, errtext.Count(len(in), "element"), len(out), errtext.Count(w.size, "rank"))
	}
	n := len(in) / w.size
	r, err := begin[T](ctx, w, "AllToAll", callAllToAll, 0, n)
	if err != nil {
		return err
	}
	defer r.leave()
	if w.allToAllWay(len(bytesOf(in))/w.size) != tuning.Short {
		return r.end(pairwise(ctx, r, n, in, out))
	}
	return r.end(forward(ctx, r, n, in, out))
}

// pairwise exchanges with each rank once.
func pairwise[T any](ctx context.Context, r *round, n int, in, out []T) error {
	size, me := r.w.size, r.w.rank
	relocate(r, span(out, n, me, 1), span(in, n, me, 1))
	for distance := 1; distance < size; distance++ {
		to, from := (me+distance)%size, (me-distance+size)%size
		if _, err := r.exchange(ctx, to, bytesOf(span(in, n, to, 1)), from, bytesOf(span(out, n, from, 1))); err != nil {
			return err
		}
	}
	return nil
}

// forward takes log2(Size) exchanges, over which each part goes the bits of its
// distance one after the other (Bruck): parts[d] is for the rank d after the one
// where it is from.
func forward[T any](ctx context.Context, r *round, n int, in, out []T) error {
	size, me := r.w.size, r.w.rank
	memory := scratch[T](r, 3*size*n)
	parts, leaving, coming := memory[:size*n], memory[size*n:][:size*n], memory[2*size*n:]
	if !r.away() {
		ahead := relocate(r, parts, in[me*n:])
		relocate(r, parts[ahead:], in)
	}
	for distance := 1; distance < size; distance *= 2 {
		count, away := 0, r.away()
		for d := distance; d < size; d = next(d, distance) {
			if !away {
				relocate(r, span(leaving, n, count, 1), span(parts, n, d, 1))
			}
			count++
		}
		to, from := (me+distance)%size, (me-distance+size)%size
		now, err := r.exchange(ctx, to, bytesOf(leaving[:count*n]), from, bytesOf(coming[:count*n]))
		if err != nil {
			return err
		}
		if !now {
			continue
		}
		count = 0
		for d := distance; d < size; d = next(d, distance) {
			relocate(r, span(parts, n, d, 1), span(coming, n, count, 1))
			count++
		}
	}
	for d := range size {
		relocate(r, span(out, n, (me-d+size)%size, 1), span(parts, n, d, 1))
	}
	return nil
}

// next is the least number above d that has the bit distance.
func next(d, distance int) int { return (d + 1) | distance }
