package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// holdBack delays what rank 1 puts to rank 0, and the marker after it, until all ranks have told each other their
// numbers of markers. Rank 2, which maps rank 0, has all that it waits for. But its puts of the next epoch must come
// later, so it does not end its Fence before. Nor does rank 3, which is on the host of rank 1, before rank 1. holdBack
// returns the queue of rank 1, and nil on other ranks.
func holdBack(ctx context.Context, w *world.World, win *Window[int64]) (late *deferred, err error) {
	if !win.core.tallies.on.Load() {
		return nil, errors.New("no Fence by tally")
	}
	if err := win.Fence(ctx); err != nil {
		return nil, err
	}
	ended, end := context.WithCancel(ctx)
	end()
	cutShort := func() error {
		if err := win.Fence(ended); !errors.Is(err, context.Canceled) {
			return fmt.Errorf("error of a Fence that cannot end is %v, want %v", err, context.Canceled)
		}
		return nil
	}
	number := win.core.epochs.LastFence() + 1
	if w.Rank() == 1 {
		p, err := win.core.peer(0)
		if err = errors.Join(err, win.Put([]int64{7}, 0, 0)); err != nil {
			return nil, err
		}
		// As if the mark had been sent.
		late = p.deferred
		late.marked.Store(true)
	} else if err := cutShort(); err != nil {
		return nil, err
	}
	_, any, err := win.core.meeting.Tally(ctx, "Tally", 0, number, func(rank int) bool { return w.Rank() == 1 && rank == 0 })
	if err != nil || !any {
		return nil, fmt.Errorf("a tally with marks: %v, %w", any, err)
	}
	if late == nil {
		if err := cutShort(); err != nil {
			return nil, err
		}
	}
	return late, w.Barrier(ctx)
}

var endsWithMates = jobtest.Register("a fence ends with mates", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 1, hint.Without(scheduler.Adapt))
	if err != nil {
		return err
	}
	late, err := holdBack(ctx, w, win)
	if err != nil {
		return err
	}
	if late != nil {
		late.marked.Store(false)
	}
	if err := win.Fence(ctx); err != nil {
		return err
	}
	var got [1]int64
	if w.Rank() == 2 {
		err = win.Get(got[:], 0, 0)
	}
	if err = errors.Join(err, win.Fence(ctx)); err != nil {
		return err
	}
	if w.Rank() == 2 {
		err = win.Put([]int64{8}, 0, 0)
	}
	if err = errors.Join(err, win.Fence(ctx, NoSucceed)); err != nil {
		return err
	}
	switch value := win.Local()[0]; {
	case w.Rank() == 2 && got[0] != 7:
		err = errors.Join(err, fmt.Errorf("got %d from a mate, want 7", got[0]))
	case w.Rank() == 0 && value != 8:
		err = errors.Join(err, fmt.Errorf("element is %d, want 8, which was put last", value))
	}
	return errors.Join(err, win.Close())
})

func TestFenceEndsWithMates(t *testing.T) { jobtest.Hosts(t, 4, endsWithMates) }

// endsWithout has rank 1 die in place of going on: all others wait at the end of the Fence.
var endsWithout = jobtest.Register("a death at the end of a fence", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 1, hint.Without(scheduler.Adapt))
	if err != nil {
		return err
	}
	if _, err := holdBack(ctx, w, win); err != nil {
		return err
	}
	jobtest.Signal("ready")
	if w.Rank() == 1 {
		<-ctx.Done()
	}
	err = win.Fence(ctx)
	if failed := (*job.PeerError)(nil); !errors.As(err, &failed) || failed.Rank != 1 {
		return fmt.Errorf("error is %v, want a *job.PeerError of rank 1", err)
	}
	return win.Close()
})

func TestKilledAtTheEndOfAFence(t *testing.T) {
	job := jobtest.StartWith(t, 4, endsWithout, func(rank int) []string {
		return []string{"RMA_DEVICE=", fmt.Sprintf("RMA_HOST=host%d", rank%2)}
	})
	for rank := range 4 {
		job.Await(rank, "ready")
	}
	job.Kill(1)
	for rank, err := range job.Wait() {
		require.Equal(t, rank == 1, err != nil, "rank %d: %v", rank, err)
	}
}
