package window_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Requests on all other ranks are waited for together: all of them, any of them, and one after the other.
var requestsTogether = registerShared("requests together", []int{3}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	// More requests than WaitAll has places for at hand.
	const each = 40
	win := allocate[int64](s, n*each)
	fill(win.Local(), me)
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.LockAll(s.Ctx))
	into := make([]int64, n*each)
	gets := func() (all []window.Request) {
		fill(into, -1)
		for i := range into {
			r, err := win.RGet(into[i:i+1], i%n, i)
			s.OK(err)
			all = append(all, r)
		}
		return all
	}
	read := func(what string) {
		for i, got := range into {
			s.Check(got == int64(i%n), "%s: get %d of rank %d has read %d", what, i, i%n, got)
		}
	}
	s.OK(window.WaitAll(s.Ctx, gets()...))
	read("WaitAll")

	left := gets()
	for len(left) > 0 {
		i, err := window.WaitAny(s.Ctx, left...)
		s.OK(err)
		left = slices.Delete(left, i, i+1)
	}
	read("WaitAny")

	seen := make([]int, n*each)
	for i, err := range window.Completed(s.Ctx, gets()...) {
		s.OK(err)
		s.Check(into[i] == int64(i%n), "Completed: get %d has read %d", i, into[i])
		seen[i]++
	}
	s.Check(!slices.ContainsFunc(seen, func(n int) bool { return n != 1 }), "Completed has yielded %v", seen)

	// What is left of a loop that has ended early is waited for later.
	all := gets()
	for range window.Completed(s.Ctx, all...) {
		break
	}
	s.OK(window.WaitAll(s.Ctx, all...))
	read("after a break")

	origin := []int64{int64(me)}
	s.OK(win.Put(origin, (me+1)%n, me))
	flush, err := win.RFlush((me + 1) % n)
	s.OK(err)
	s.OK(window.WaitAll(s.Ctx, flush, window.Request{}))
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
})

func TestRequestsTogether(t *testing.T) { runShared(t, requestsTogether) }

// An ended context cuts the calls short, and what is incomplete can be waited for again.
func TestRequestsCutShort(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			if err := win.Lock(ctx, window.Exclusive, 1); err != nil {
				return err
			}
			if err := win.Flush(ctx, 1); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := win.Lock(ctx, window.Shared, 1); err != nil {
				return err
			}
			into := make([]int64, 1)
			get, err := win.RGet(into, 1, 0)
			if err != nil {
				return err
			}
			if err := window.WaitAll(over, get); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("WaitAll: %w", err)
			}
			if i, err := window.WaitAny(over, get); i != -1 || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("WaitAny: %d, %w", i, err)
			}
			for i, err := range window.Completed(over, get) {
				if i != -1 || !errors.Is(err, context.Canceled) {
					return fmt.Errorf("Completed: %d, %w", i, err)
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if err := errors.Join(window.WaitAll(ctx, get), win.Unlock(ctx, 1)); err != nil || into[0] != 7 {
				return fmt.Errorf("%d, %w", into[0], err)
			}
			return win.Close()
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		win.Local()[0] = 7
		return errors.Join(win.Unlock(ctx, 1), win.Close())
	}, world.WithDevice("tcp")))
}

// A request of a rank that fails is one of the errors, and the others complete.
func TestRequestsOfTheDead(t *testing.T) {
	died := errors.New("enough")
	err := world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			if err := win.Lock(ctx, window.Exclusive, 2); err != nil {
				return err
			}
			if err := win.Flush(ctx, 2); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 2 {
			return died
		}
		if w.Rank() == 0 {
			if err := errors.Join(win.Lock(ctx, window.Shared, 1), win.Lock(ctx, window.Shared, 2)); err != nil {
				return err
			}
			into := make([]int64, 2)
			lives, err := win.RGet(into[:1], 1, 0)
			if err != nil {
				return err
			}
			dies, err := win.RGet(into[1:], 2, 0)
			var failed *world.PeerError
			if err == nil {
				err = window.WaitAll(ctx, dies, lives)
			}
			if !errors.As(err, &failed) || failed.Rank != 2 {
				return fmt.Errorf("another error: %w", err)
			}
			if done, err := lives.Test(); !done || err != nil {
				return fmt.Errorf("the request of a living rank: %t, %w", done, err)
			}
		}
		return nil
	}, world.WithDevice("tcp"))
	require.ErrorIs(t, err, died)
	require.NotContains(t, err.Error(), "another error")
	require.NotContains(t, err.Error(), "living rank")
}

// Wrong arguments.
func TestRequestsArguments(t *testing.T) {
	require.NoError(t, window.WaitAll(t.Context()))
	i, err := window.WaitAny(t.Context())
	require.Equal(t, -1, i)
	require.ErrorIs(t, err, window.ErrArgument)
	require.EqualError(t, err, "window: WaitAny: invalid argument: no requests")
	i, err = window.WaitAny(t.Context(), window.Request{})
	require.Zero(t, i)
	require.NoError(t, err)
	for i, err := range window.Completed(nil) { //nolint:staticcheck // A nil context is what the test is about.
		require.Equal(t, -1, i)
		require.ErrorIs(t, err, window.ErrArgument)
	}
}

// Results are used in the order in which they come.
func ExampleCompleted() {
	err := world.Run(context.Background(), 4, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		win.Local()[0] = int64(w.Rank())
		if err := win.Fence(ctx, window.NoPrecede); err != nil {
			return err
		}
		if w.Rank() == 0 {
			sum, from := int64(0), make([]int64, w.Size())
			var gets []window.Request
			for rank := range w.Size() {
				get, err := win.RGet(from[rank:rank+1], rank, 0)
				if err != nil {
					return err
				}
				gets = append(gets, get)
			}
			for rank, err := range window.Completed(ctx, gets...) {
				if err != nil {
					return err
				}
				sum += from[rank]
			}
			fmt.Println(sum)
		}
		if err := win.Fence(ctx, window.NoSucceed); err != nil {
			return err
		}
		return win.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 6
}
