package window_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Errors of Allocate and Create, and of collectives that meet them, name the call of the program.
func TestErrorsNameCreation(t *testing.T) {
	type body = func(ctx context.Context, w *world.World) error
	allocate := func(ctx context.Context, w *world.World) error {
		_, err := window.Allocate[int64](ctx, w, 0)
		return err
	}
	create := func(ctx context.Context, w *world.World) error {
		_, err := window.Create[int64](ctx, w, nil)
		return err
	}
	barrier := func(ctx context.Context, w *world.World) error { return w.Barrier(ctx) }
	gather := func(ctx context.Context, w *world.World) error {
		return world.AllGather(ctx, w, []int{1}, make([]int, 2))
	}
	shrink := func(ctx context.Context, w *world.World) error {
		_, err := w.Shrink(ctx)
		return err
	}
	leave := func(_ context.Context, w *world.World) error { return w.Close() }
	for _, options := range [][]world.Option{nil, {world.WithDevice("tcp"), world.WithAddress("127.0.0.1")}} {
		for _, test := range []struct {
			call, other body
			text        string
		}{
			{allocate, barrier, "window: Allocate: ranks disagree: collective 1: rank 0 calls window.Allocate or Create, rank 1 Barrier"},
			{barrier, create, "world: Barrier: ranks disagree: collective 1: rank 0 calls Barrier, rank 1 window.Allocate or Create"},
			{create, gather, "window: Create: ranks disagree: collective 1: rank 0 calls window.Allocate or Create, rank 1 AllGather"},
			{allocate, create, "window: Allocate: ranks disagree: rank 1 called Create, rank 0 called Allocate"},
			{allocate, leave, "window: Allocate: rank 1 has left the job, or the team"},
			{create, shrink, "window: Create: rank 1 has called Shrink, and comes to no other collective of this World: call Shrink here, too, or close this World"},
		} {
			var got error
			// A rank that has failed would be the error of the other.
			over := make(chan struct{})
			_ = world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
				if w.Rank() == 1 {
					err := test.other(ctx, w)
					<-over
					return err
				}
				got = test.call(ctx, w)
				close(over)
				return got
			}, options...)
			require.EqualError(t, got, test.text)
			var lost *world.PeerError
			require.True(t, !errors.As(got, &lost) || slices.Contains([]string{"window.Allocate", "window.Create"}, lost.Op), got)
		}
	}
}

// An Allocate that its context has cut short names itself, and so does a collective that comes in its place.
func TestCutAllocateIsNamed(t *testing.T) {
	cut := make(chan struct{})
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		var texts [2]string
		if w.Rank() == 0 {
			short, cancel := context.WithCancel(ctx)
			waits := make(chan error, 1)
			go func() {
				waits <- await.UntilParked(ctx, "progress.(*Waiter).pause", 1)
				cancel()
			}()
			_, err := window.Allocate[int64](short, w, 0)
			if err := <-waits; err != nil {
				return err
			}
			texts = [2]string{fmt.Sprint(err), fmt.Sprint(w.Barrier(ctx))}
			close(cut)
		}
		<-cut
		win, err := window.Allocate[int64](ctx, w, 0)
		if err != nil {
			return err
		}
		if want := [2]string{
			"window: Allocate: context canceled: it waits for rank 1",
			"world: Barrier: a collective is unfinished: window.Allocate was cut short, call it again with the same arguments first",
		}; w.Rank() == 0 && texts != want {
			return fmt.Errorf("%q", texts)
		}
		return win.Close()
	}))
}
