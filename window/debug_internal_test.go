package window

import (
	"context"
	"maps"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// Nothing is kept of a window whose end came in the midst of an epoch, after a rank had closed its part: another
// window may be at the same place.
func TestNoAccessOutlivesItsWindow(t *testing.T) {
	kept := func() (n int) {
		parts.Range(func(_, _ any) bool { n++; return true })
		return n
	}
	require.Zero(t, kept())
	var first atomic.Pointer[Window[int64]]
	require.ErrorIs(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 10)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			require.NotZero(t, kept())
			first.Store(win)
			return win.Close()
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		// Rank 0 has closed its part, and waits for this one.
		for first.Load() == nil || !first.Load().core.closed.Load() {
			runtime.Gosched()
		}
		return win.Put([]int64{1}, 0, 0)
	}, world.WithDebug()), ErrMisuse, "rank 1 leaves its epoch open")
	require.Zero(t, kept())
}

// A rank that has called Close, and waits there for one in an epoch, is a target as before: what that epoch has noted of
// its part is found.
func TestMisuseIsFoundAfterTheTargetCalledClose(t *testing.T) {
	var closing atomic.Pointer[Window[int64]]
	noted := make(chan struct{})
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 10)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			closing.Store(win)
			<-noted
			return win.Close()
		}
		v := make([]int64, 1)
		require.NoError(t, win.Lock(ctx, Exclusive, 1))
		require.NoError(t, win.Put([]int64{3}, 1, 0))
		require.NoError(t, win.FlushLocal(ctx, 1))
		close(noted)
		for closing.Load() == nil || !closing.Load().core.tallies.broken.Load() {
			runtime.Gosched()
		}
		require.ErrorIs(t, win.Get(v, 1, 0), ErrMisuse)
		require.NoError(t, win.Get(v, 1, 1))
		require.ErrorIs(t, win.Put(v, 1, 1), ErrMisuse)
		require.NoError(t, win.Unlock(ctx, 1))
		return win.Close()
	}, world.WithDebug()))
}

// An index finds what a look at all of its extents finds, and gives up those of old generations.
func TestDebugIndexIsAsALookAtAll(t *testing.T) {
	type kept struct {
		times      int
		generation uint64
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		x, model, generation := newIndex[extent](), make(map[extent]kept), uint64(0)
		extents, longest := 1+random.Uint64N(100), 1+random.Uint64N(200)
		some := func() extent {
			first := random.Uint64N(extents)
			return extent{first, first + 1 + random.Uint64N(longest)}
		}
		for range 500 {
			e := some()
			one := model[e]
			switch {
			case one.times > 0 && random.IntN(4) == 0:
				x.raise(e, generation)
				one.generation = generation
			case one.times > 0 && random.IntN(2) == 0:
				x.remove(e)
				one.times--
			case random.IntN(8) == 0:
				require.Equal(t, e, x.add(e, e, generation))
				if one.times == 0 {
					one.generation = generation
				}
				one.times++
			}
			if model[e] = one; one.times == 0 {
				delete(model, e)
			}
			if random.IntN(8) == 0 {
				generation++
			}
			if random.IntN(20) == 0 {
				upTo := generation - min(generation, random.Uint64N(10))
				if random.IntN(20) == 0 {
					upTo = lastGeneration
				}
				var old []extent
				maps.DeleteFunc(model, func(e extent, one kept) bool {
					if one.generation <= upTo {
						old = append(old, e)
					}
					return one.generation <= upTo
				})
				require.ElementsMatch(t, old, x.take(upTo))
			}
			_, known := x.at(e)
			require.Equal(t, model[e].times > 0, known)
			sought, meet := some(), false
			for one := range model {
				meet = meet || sought.first < one.last && one.first < sought.last
			}
			of, at, found := x.meets(sought)
			require.Equal(t, meet, found, "%v among %v", sought, model)
			if found {
				require.Equal(t, of, at)
				require.NotZero(t, model[at])
				require.True(t, at.meets(sought))
			}
		}
		require.Equal(t, len(model), x.tree.Len())
	}
}

// What an operation is compared with does not grow with those before it, and what is alike is kept once.
func TestDebugLooksAtFewOperations(t *testing.T) {
	const n = 4000
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 6*n)
		if err != nil {
			return err
		}
		require.NoError(t, win.LockAll(ctx))
		one, origins, results := []int64{1}, make([]int64, n), make([]int64, n)
		for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
			require.NoError(t, win.Accumulate(Sum, one, 0, i))
			require.NoError(t, win.Accumulate(Sum, one, 0, i%7))
			require.NoError(t, win.Put(one, 0, n+i))
			require.NoError(t, win.Put(origins[i:i+1], 0, 2*n+i))
			require.NoError(t, win.Get(results[i:i+1], 0, 3*n+i))
			require.NoError(t, win.PutNotify(one, 0, 4*n+i, 0))
			request, err := win.RPut(one, 0, 5*n+i)
			require.NoError(t, err)
			require.NoError(t, request.Wait(ctx))
		}
		looked, d, all := 0, win.core.watch.debug, win.core.accessesOf(0)
		for _, buffers := range []*index[*buffer]{d.origins[0], d.results[0]} {
			looked += buffers.looked
		}
		kept := 0
		for _, open := range all.open {
			looked += open.looked
			kept += open.tree.Len()
		}
		require.Less(t, looked, 7*n*4)
		// The puts that notify are not kept, and half of the accumulates are to places that have had one.
		require.Equal(t, 5*n, kept)
		require.Empty(t, all.passing)
		require.Equal(t, n+1, d.origins[0].tree.Len())
		require.Equal(t, n, d.results[0].tree.Len())
		require.NoError(t, win.FlushAll(ctx))
		require.Empty(t, all.open)
		require.Empty(t, d.origins)
		require.Empty(t, d.results)
		require.NoError(t, win.UnlockAll(ctx))
		return win.Close()
	}, world.WithDebug()))
}

// Flushes without a wait keep no more records, and look at no more. Each flush that ends releases the records of what
// it has completed.
func TestDebugKeepsFewBehindRFlush(t *testing.T) {
	const n = 500
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, n)
		if err != nil {
			return err
		}
		require.NoError(t, win.LockAll(ctx))
		if w.Rank() == 0 {
			one, all := []int64{1}, win.core.accessesOf(1)
			requests := make([]Request, n)
			for i := range requests {
				require.NoError(t, win.Accumulate(Sum, one, 1, i))
				requests[i], err = win.RFlush(1)
				require.NoError(t, err)
			}
			require.Len(t, all.open, 1)
			for _, open := range all.open {
				require.Less(t, open.looked, 4*n)
			}
			for i, request := range requests {
				require.NoError(t, request.Wait(ctx))
				for _, open := range all.open {
					require.Equal(t, n-1-i, open.tree.Len())
					require.Equal(t, n-1-i, open.ages.Len())
				}
			}
			require.Empty(t, all.open)
		}
		require.NoError(t, win.UnlockAll(ctx))
		return win.Close()
	}, world.WithDebug(), world.WithDevice("tcp")))
}

// A benchmark's operation is one of an epoch with as many as there are.
func BenchmarkDebug(b *testing.B) {
	const elements = 1 << 22
	for _, c := range []struct {
		name string
		do   func(win *Window[int64], origin []int64, to int) error
	}{
		{"accumulate", func(win *Window[int64], origin []int64, to int) error { return win.Accumulate(Sum, origin, 0, to) }},
		{"put", func(win *Window[int64], origin []int64, to int) error { return win.Put(origin, 0, to) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			require.NoError(b, world.Run(b.Context(), 1, func(ctx context.Context, w *world.World) error {
				win, err := Allocate[int64](ctx, w, elements)
				if err != nil {
					return err
				}
				require.NoError(b, win.LockAll(ctx))
				origins := make([]int64, elements)
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if i > 0 && i%elements == 0 {
						require.NoError(b, win.FlushAll(ctx))
					}
					// An odd factor has them all over the window, each in another place.
					to := i * 0x9e3779b1 % elements
					if err := c.do(win, origins[to:to+1], to); err != nil {
						return err
					}
				}
				require.NoError(b, win.FlushAll(ctx))
				b.StopTimer()
				require.NoError(b, win.UnlockAll(ctx))
				return win.Close()
			}, world.WithDebug()))
		})
	}
}
