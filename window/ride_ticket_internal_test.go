package window

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// rideWrap has the tickets for locks come to their largest and begin anew: none is 0, which
// means that no answer is wanted, and each is answered.
var rideWrap = jobtest.Register("tickets that wrap", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		for name, epoch := range map[string]func() error{
			"Unlock": func() error {
				return errors.Join(win.Lock(ctx, Exclusive, 1), win.Accumulate(Sum, []int64{1}, 1, 0), win.Unlock(ctx, 1))
			},
			"Flush": func() error {
				return errors.Join(win.Lock(ctx, Shared, 1), win.Accumulate(Sum, []int64{1}, 1, 0), win.Flush(ctx, 1), win.Unlock(ctx, 1))
			},
			"LockAll": func() error {
				return errors.Join(win.LockAll(ctx), win.Accumulate(Sum, []int64{1}, 1, 0), win.UnlockAll(ctx))
			},
		} {
			const last = math.MaxUint32 - 1
			win.core.tickets[1].Store(last)
			win.core.granted[1].Store(last)
			for range 3 {
				err = errors.Join(err, epoch())
			}
			if ticket := win.core.tickets[1].Load(); ticket == 0 || ticket > 2 {
				err = errors.Join(err, fmt.Errorf("%s: the last ticket is %d, want one after the wrap", name, ticket))
			}
		}
	}
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 1 && win.Local()[0] != 9 {
		err = errors.Join(err, fmt.Errorf("element is %d, want 9", win.Local()[0]))
	}
	return errors.Join(err, win.Close())
})

func TestRideWrap(t *testing.T) { jobtest.Apart(t, 2, rideWrap) }

// rideOvertaken has a goroutine wait for a grant while that comes, and the one for the next
// ticket: it finds that its own has come.
var rideOvertaken = jobtest.Register("a grant that a later one overtakes", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		ended, end := context.WithCancel(ctx)
		defer end()
		p, failed := win.core.peer(1)
		if failed != nil {
			return failed
		}
		win.core.tickets[1].Store(5)
		waited := make(chan error)
		go func() { waited <- p.deferred.awaitTicket(ended, "", "waiting") }()
		for win.core.readers.Load() == 0 {
			runtime.Gosched()
		}
		win.core.tickets[1].Store(6)
		win.core.granted[1].Store(6)
		// It has no other reason to go on waiting, and to fail then.
		end()
		if e := <-waited; e != nil {
			err = fmt.Errorf("waiting for ticket 5, when 6 has been granted: %w", e)
		}
	}
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestRideOvertaken(t *testing.T) { jobtest.Apart(t, 2, rideOvertaken) }

// rideGoroutines has a goroutine that locks rank 2 wait for the lock of rank 1, for which
// another has wished, and which it has asked for: when that is taken back it has its own.
var rideGoroutines = jobtest.Register("a wish that another goroutine has asked for", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		err = win.Lock(ctx, Exclusive, 1)
	}
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 0 {
		err = errors.Join(err, win.Lock(ctx, Exclusive, 1))
		locked := make(chan error)
		go func() { locked <- win.Lock(ctx, Exclusive, 2) }()
		for win.core.readers.Load() == 0 {
			runtime.Gosched()
		}
		err = errors.Join(err, win.Unlock(ctx, 1), <-locked, win.Unlock(ctx, 2))
	}
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 1 {
		err = errors.Join(err, win.Unlock(ctx, 1))
	}
	return errors.Join(err, win.Close())
})

func TestRideGoroutines(t *testing.T) { jobtest.Apart(t, 3, rideGoroutines) }

// rideAtOnce has goroutines lock ranks of two windows at the same time: of their locks at
// most one is put off.
var rideAtOnce = jobtest.Register("locks of goroutines at once", func(ctx context.Context, w *world.World) error {
	first, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	second, err := Allocate[int64](ctx, w, 8)
	if err != nil {
		return err
	}
	locks := []struct {
		win    *Window[int64]
		target int
	}{{first, 1}, {first, 2}, {second, 1}}
	for round := 0; w.Rank() == 0 && round < 500 && err == nil; round++ {
		errs := make([]error, len(locks))
		var together sync.WaitGroup
		for i, l := range locks {
			together.Go(func() { errs[i] = l.win.Lock(ctx, Exclusive, l.target) })
		}
		together.Wait()
		err = errors.Join(errs...)
		putOff := 0
		for _, l := range locks {
			p, e := l.win.core.peer(l.target)
			if e != nil {
				return errors.Join(err, e)
			}
			p.deferred.mu.Lock()
			if p.deferred.hold == wanted {
				putOff++
			}
			p.deferred.mu.Unlock()
		}
		if putOff > 1 {
			err = errors.Join(err, fmt.Errorf("round %d: %d locks are put off", round, putOff))
		}
		for _, l := range locks {
			err = errors.Join(err, l.win.Unlock(ctx, l.target))
		}
	}
	return errors.Join(err, w.Barrier(ctx), second.Close(), first.Close())
})

func TestRideAtOnce(t *testing.T) { jobtest.Apart(t, 3, rideAtOnce) }
