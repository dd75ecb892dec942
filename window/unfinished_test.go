package window_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A maker makes a window of 8 elements, the same one when it is called again.
type maker struct {
	name string
	of   func() func(ctx context.Context, w *world.World) (*window.Window[int64], error)
}

var makers = []maker{
	{"Allocate", func() func(ctx context.Context, w *world.World) (*window.Window[int64], error) {
		return func(ctx context.Context, w *world.World) (*window.Window[int64], error) {
			return window.Allocate[int64](ctx, w, 8)
		}
	}},
	{"Create", func() func(ctx context.Context, w *world.World) (*window.Window[int64], error) {
		memory := make([]int64, 8)
		return func(ctx context.Context, w *world.World) (*window.Window[int64], error) {
			return window.Create(ctx, w, memory)
		}
	}},
}

// useWindow has every rank write to every other's part, and looks that it came there.
func useWindow(s *script, win *window.Window[int64]) {
	s.OK(win.LockAll(s.Ctx))
	for target := range s.World.Size() {
		s.OK(win.Put([]int64{int64(s.World.Rank()) + 1}, target, s.World.Rank()))
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Fence(s.Ctx))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	for from := range s.World.Size() {
		s.Check(win.Local()[from] == int64(from)+1, "element %d is %d", from, win.Local()[from])
	}
}

// notifyAll lets every rank go on that waits at slot 0 of the gate.
func notifyAll(s *script, gate *window.Window[int64]) {
	s.OK(gate.LockAll(s.Ctx))
	for rank := range s.World.Size() {
		s.OK(gate.PutNotify([]int64{1}, rank, 0, 0))
	}
	s.OK(gate.UnlockAll(s.Ctx))
}

func init() {
	for _, m := range makers {
		// Rank 0 gives up while the others have not even called, and they get their
		// windows before it calls again.
		registerShared("giving up "+m.name, []int{2, 3}, func(s *script) {
			gate := allocate[int64](s, 1)
			call := m.of()
			if s.World.Rank() == 0 {
				soon, stop := context.WithTimeout(s.Ctx, 20*time.Millisecond) // expires
				defer stop()
				_, err := call(soon, s.World)
				s.Fails(err, context.DeadlineExceeded)
				_, err = window.Allocate[int64](s.Ctx, s.World, 9)
				s.Fails(err, world.ErrUnfinished)
				s.Fails(s.World.Barrier(s.Ctx), world.ErrUnfinished)
				notifyAll(s, gate)
			}
			s.OK(gate.WaitNotify(s.Ctx, 0, 1))
			win, err := call(s.Ctx, s.World)
			s.OK(err)
			useWindow(s, win)
			s.OK(win.Close())
			s.OK(gate.Close())
		})
		// Every rank gives up whenever it has to block.
		registerShared("impatient "+m.name, []int{2, 3}, func(s *script) {
			ended, end := context.WithCancel(s.Ctx)
			end()
			for range 3 {
				call := m.of()
				win, err := call(ended, s.World)
				for errors.Is(err, context.Canceled) {
					win, err = call(ended, s.World)
				}
				s.OK(err)
				useWindow(s, win)
				s.OK(win.Close())
			}
		})
	}
}

// TestUnfinished looks that a creation that its context cut short goes on when it is
// called again, with the part that others may know by then.
func TestUnfinished(t *testing.T) {
	busy.Acquire(t)
	for _, m := range makers {
		for _, how := range []string{"giving up ", "impatient "} {
			runShared(t, how+m.name)
		}
	}
}

// A creation that was kept out by another goroutine's collective has sent nothing to other ranks. Any other call may
// follow it, and the ranks stay in step.
var kept = registerShared("creation kept out", []int{2}, func(s *script) {
	gate := allocate[int64](s, 1)
	ended, end := context.WithCancel(s.Ctx)
	end()
	if s.World.Rank() == 0 {
		s.Fails(s.World.Barrier(ended), context.Canceled)
		_, err := window.Allocate[int64](s.Ctx, s.World, 3)
		s.Fails(err, world.ErrUnfinished)
		_, err = window.Allocate[int8](s.Ctx, s.World, 7)
		s.Fails(err, world.ErrUnfinished)
		notifyAll(s, gate)
	}
	s.OK(gate.WaitNotify(s.Ctx, 0, 1))
	s.OK(s.World.Barrier(s.Ctx))
	win := allocate[int64](s, 8)
	useWindow(s, win)
	s.OK(win.Close())
	s.OK(gate.Close())
})

func TestKeptOut(t *testing.T) { runShared(t, kept) }
