package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// aheadOf returns while rank 1 is in a Fence after number last, which rank 0 has ended.
func aheadOf(ctx context.Context, win *Window[int64], asserts ...Assert) (last uint32, err error) {
	w := win.core.world
	if err := errors.Join(win.Fence(ctx, asserts...), w.Barrier(ctx)); err != nil {
		return 0, err
	}
	t := &win.core.tallies
	last = t.passed.Load()
	switch w.Rank() {
	case 0:
		t.passed.Store(last + 1)
		t.gate.Store(last + 1)
	case 1:
		t.begun.Store(last + 1)
	}
	return last, w.Barrier(ctx)
}

// gated has rank 1 be in a Fence that rank 0 has ended, as if marks of rank 2 were late. What rank 0
// puts direct waits for it, but no other call does: each looks at its context. Then it is there.
var gated = jobtest.Register("operations that wait for a Fence", func(ctx context.Context, w *world.World) error {
	// Direct, and sent at once.
	const count = 1 << 14
	win, err := Allocate[int64](ctx, w, 3*count, hint.Without(scheduler.Adapt|scheduler.Defer))
	if err != nil {
		return err
	}
	t := &win.core.tallies
	last, err := aheadOf(ctx, win)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		err = putGated(ctx, win)
	}
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 1 {
		if win.Local()[0] != 0 {
			err = errors.Join(err, fmt.Errorf("element is %d before the end of the Fence", win.Local()[0]))
		}
		t.passed.Store(last + 1)
	}
	if w.Rank() == 0 {
		p, failed := win.core.peer(1)
		err = errors.Join(err, failed, p.deferred.start(ctx, scheduler.Nothing))
	}
	err = errors.Join(err, w.Barrier(ctx))
	t.passed.Store(last)
	t.begun.Store(last)
	t.gate.Store(0)
	err = errors.Join(err, w.Barrier(ctx), win.Fence(ctx, NoSucceed))
	if local := win.Local(); w.Rank() == 1 && (local[0] != 7 || local[count] != 8) {
		err = errors.Join(err, fmt.Errorf("elements are %d and %d, want 7 and 8", local[0], local[count]))
	}
	return errors.Join(err, win.Close())
})

// putGated puts to rank 1, which is in its Fence.
func putGated(ctx context.Context, win *Window[int64]) error {
	const count = 1 << 14
	ended, end := context.WithCancel(ctx)
	end()
	values := make([]int64, count)
	values[0] = 7
	err := win.Put(values, 1, 0)
	others := make([]int64, count)
	others[0] = 8
	request, e := win.RPut(others, 1, count)
	err = errors.Join(err, e)
	if done, e := request.Test(); done || e != nil {
		err = errors.Join(err, fmt.Errorf("a request is complete: %v, %v", done, e))
	}
	p, e := win.core.peer(1)
	if err = errors.Join(err, e); err != nil {
		return err
	}
	for name, wait := range map[string]func() error{
		"Request.Wait":   func() error { return request.Wait(ended) },
		"WaitNotify":     func() error { return win.WaitNotify(ended, 0, 1) },
		"a way to leave": func() error { return p.deferred.start(ended, scheduler.Nothing) },
		"long accumulate": func() error {
			if err := p.deferred.openHeld(ended); err != nil {
				return err
			}
			p.deferred.mu.Unlock()
			return nil
		},
		"mark": func() error {
			_, err := p.deferred.mark(ended, 0)
			return err
		},
	} {
		if e := wait(); !errors.Is(e, context.Canceled) {
			err = errors.Join(err, fmt.Errorf("error of %s is %v, want %v", name, e, context.Canceled))
		}
	}
	return err
}

// leftInFence has rank 1 leave in a Fence that rank 0 has ended: rank 0 reaches its memory yet.
var leftInFence = jobtest.Register("a target that left in a Fence", func(ctx context.Context, w *world.World) error {
	const count = 1 << 14
	win, err := Allocate[int64](ctx, w, count)
	if err != nil {
		return err
	}
	if _, err := aheadOf(ctx, win, NoSucceed); err != nil || w.Rank() != 0 {
		return err
	}
	values, result := make([]int64, count), make([]int64, 1)
	values[0] = 7
	err = errors.Join(win.Lock(ctx, Exclusive, 1), win.Put(values, 1, 0), win.Flush(ctx, 1), win.Get(result, 1, 0), win.Unlock(ctx, 1))
	if result[0] != 7 {
		err = errors.Join(err, fmt.Errorf("element is %d, want 7", result[0]))
	}
	return err
})

func TestLeftInFence(t *testing.T) { jobtest.TCP(t, 3, leftInFence) }

func TestGate(t *testing.T) { jobtest.TCP(t, 3, gated) }
