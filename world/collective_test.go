package world_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

func add(a, b int64) int64 { return a + b }

// collectives runs each collective with parts of k elements and checks what came.
func collectives(ctx context.Context, w *world.World, k int) error {
	n, me := w.Size(), w.Rank()
	value := func(rank, i int) int64 { return int64(rank)*1000 + int64(i) }
	mine := make([]int64, k)
	for i := range mine {
		mine[i] = value(me, i)
	}
	root := k % n
	expect := func(what string, got []int64, want func(i int) int64) error {
		for i, g := range got {
			if g != want(i) {
				return fmt.Errorf("%s: rank %d of %d, element %d is %d, want %d", what, me, n, i, g, want(i))
			}
		}
		return nil
	}
	check := func(err error, what string, got []int64, want func(i int) int64) error {
		if err != nil {
			return err
		}
		return expect(what, got, want)
	}
	buffer := append([]int64(nil), mine...)
	if err := check(world.Broadcast(ctx, w, root, buffer), "Broadcast", buffer, func(i int) int64 { return value(root, i) }); err != nil {
		return err
	}
	all := make([]int64, n*k)
	byRank := func(i int) int64 { return value(i/max(k, 1), i%max(k, 1)) }
	if err := check(world.AllGather(ctx, w, mine, all), "AllGather", all, byRank); err != nil {
		return err
	}
	gathered := make([]int64, n*k)
	if me != root {
		gathered = nil
	}
	if err := check(world.Gather(ctx, w, root, mine, gathered), "Gather", gathered, byRank); err != nil {
		return err
	}
	part := make([]int64, k)
	if err := check(world.Scatter(ctx, w, root, gathered, part), "Scatter", part, func(i int) int64 { return value(me, i) }); err != nil {
		return err
	}
	toAll := make([]int64, n*k)
	for i := range toAll {
		toAll[i] = value(me, i/max(k, 1))
	}
	fromAll := make([]int64, n*k)
	if err := check(world.AllToAll(ctx, w, toAll, fromAll), "AllToAll", fromAll, func(i int) int64 { return value(i/k, me) }); err != nil {
		return err
	}
	sum := func(i int) int64 { return int64(n*(n-1)/2)*1000 + int64(n*i) }
	total := make([]int64, k)
	if err := world.Reduce(ctx, w, root, mine, total, add); err != nil {
		return err
	}
	if me == root {
		if err := expect("Reduce", total, sum); err != nil {
			return err
		}
	}
	if err := check(world.AllReduce(ctx, w, mine, total, add), "AllReduce", total, sum); err != nil {
		return err
	}
	return w.Barrier(ctx)
}

func TestCollectives(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8, 13, 17} {
		for _, k := range []int{0, 1, 5, 1000} {
			t.Run(fmt.Sprintf("%d ranks of %d", n, k), func(t *testing.T) {
				require.NoError(t, world.Run(t.Context(), n, func(ctx context.Context, w *world.World) error { return collectives(ctx, w, k) }))
			})
		}
	}
	t.Run("large", func(t *testing.T) {
		require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error { return collectives(ctx, w, 300_000) }))
	})
}

func TestThousandRanks(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1000, func(ctx context.Context, w *world.World) error {
		for range 5 {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		all := make([]int32, w.Size())
		if err := world.AllGather(ctx, w, []int32{int32(w.Rank())}, all); err != nil {
			return err
		}
		for rank, got := range all {
			if int(got) != rank {
				return fmt.Errorf("rank %d's element is %d", rank, got)
			}
		}
		return nil
	}))
}

var errBody = errors.New("body failed")

// A rank that fails ends the others' collectives with a PeerError that names it.
func TestRankFails(t *testing.T) {
	calls := map[string]func(ctx context.Context, w *world.World) error{
		"Barrier": func(ctx context.Context, w *world.World) error { return w.Barrier(ctx) },
		"AllGather": func(ctx context.Context, w *world.World) error {
			return world.AllGather(ctx, w, make([]int, 1), make([]int, w.Size()))
		},
		"Broadcast": func(ctx context.Context, w *world.World) error {
			return world.Broadcast(ctx, w, 1, make([]int, 100_000))
		},
		"AllReduce": func(ctx context.Context, w *world.World) error {
			return world.AllReduce(ctx, w, make([]int64, 1), make([]int64, 1), add)
		},
	}
	for name, collective := range calls {
		for how, fail := range map[string]func() error{
			"error": func() error { return errBody },
			"panic": func() error { panic(errBody) },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				got := make([]error, 4)
				err := world.Run(t.Context(), 4, func(ctx context.Context, w *world.World) error {
					if w.Rank() == 1 {
						return fail()
					}
					got[w.Rank()] = collective(ctx, w)
					return got[w.Rank()]
				})
				var rank *world.RankError
				require.ErrorAs(t, err, &rank)
				require.Equal(t, 1, rank.Rank)
				require.ErrorContains(t, err, errBody.Error())
				for _, r := range []int{0, 2, 3} {
					var peer *world.PeerError
					require.ErrorAs(t, got[r], &peer, "rank %d", r)
					require.Equal(t, 1, peer.Rank)
				}
			})
		}
	}
}

// A rank that leaves while others call a collective fails it.
func TestRankLeaves(t *testing.T) {
	for _, n := range []int{2, 5} {
		got := make([]error, n)
		err := world.Run(t.Context(), n, func(ctx context.Context, w *world.World) error {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if w.Rank() == 1 {
				return nil
			}
			got[w.Rank()] = w.Barrier(ctx)
			return got[w.Rank()]
		})
		require.Error(t, err)
		for rank, err := range got {
			if rank != 1 {
				var peer *world.PeerError
				require.ErrorAs(t, err, &peer)
			}
		}
	}
}

// Ranks that disagree on a collective hear of it.
func TestMismatch(t *testing.T) {
	err := world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		return world.Broadcast(ctx, w, 0, make([]int32, 3+w.Rank()))
	})
	require.ErrorIs(t, err, world.ErrMismatch)
	require.ErrorContains(t, err, "length in bytes of rank 0 is 12, here it is 16")
	err = world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 0 {
			return world.AllGather(ctx, w, make([]int32, 1), make([]int32, 2))
		}
		return world.AllToAll(ctx, w, make([]int32, 2), make([]int32, 2))
	})
	require.ErrorIs(t, err, world.ErrMismatch)
}

func TestArguments(t *testing.T) {
	require.ErrorIs(t, world.Run(t.Context(), 0, nil), world.ErrArgument)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		require.ErrorIs(t, world.Broadcast(ctx, w, 1, []int{1}), world.ErrArgument)
		require.ErrorIs(t, world.Broadcast(ctx, w, 0, []string{"a"}), world.ErrArgument)
		require.ErrorContains(t, world.Broadcast(ctx, w, 0, []struct{ A [2]*int }{}), "A *int")
		require.ErrorIs(t, world.AllGather(ctx, w, []int{1}, nil), world.ErrArgument)
		require.ErrorIs(t, world.AllToAll(ctx, w, []int{1}, nil), world.ErrArgument)
		return nil
	}))
}

// A barrier that was cancelled is the same barrier when it is called again.
func TestBarrierCancelled(t *testing.T) {
	for _, n := range []int{2, 9} {
		require.NoError(t, world.Run(t.Context(), n, func(ctx context.Context, w *world.World) error {
			if w.Rank() == 0 {
				short, cancel := context.WithCancel(ctx)
				cancel()
				if err := w.Barrier(short); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("Barrier that nobody else calls returned %v", err)
				}
			}
			if err := world.Broadcast(ctx, w, 0, []int{1}); err != nil {
				return err
			}
			for range 3 {
				if err := w.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}
