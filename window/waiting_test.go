package window_test

import (
	"testing"

	"github.com/onesided/rma/window"
)

// progress has rank 0 accumulate to rank 1, some of which may be held back, and then
// wait for what rank 1 does only when it has seen the sum.
func progress(wait, release func(s *script, win *window.Window[int64])) func(s *script) {
	return func(s *script) {
		win := allocate[int64](s, farCount)
		self := groupOf(s, win, 1-s.World.Rank())
		if s.World.Rank() == 1 {
			s.OK(take(s.Ctx, win, window.Exclusive, 0))
		} else {
			s.OK(win.Post(s.Ctx, self))
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		if s.World.Rank() == 0 {
			for range 5 {
				s.OK(win.Accumulate(window.Sum, []int64{1}, 1, 7))
			}
			wait(s, win)
		} else {
			for sum := int64(0); sum != 5; {
				s.OK(win.FetchAndOp(window.NoOp, 0, &sum, 1, 7))
				s.OK(win.FlushLocal(s.Ctx, 1))
			}
			release(s, win)
		}
		s.OK(win.Unlock(s.Ctx, 1))
		if s.World.Rank() == 1 {
			s.OK(win.Unlock(s.Ctx, 0))
			s.OK(win.Start(s.Ctx, self))
			s.OK(win.Complete(s.Ctx))
		} else {
			s.OK(win.Wait(s.Ctx))
		}
		s.OK(win.Close())
	}
}

var (
	progressNotify = register("progress in WaitNotify", progress(
		func(s *script, win *window.Window[int64]) { s.OK(win.WaitNotify(s.Ctx, 0, 1)) },
		func(s *script, win *window.Window[int64]) { s.OK(win.PutNotify([]int64{1}, 0, 0, 0)) }))
	progressTest = register("progress in TestNotify", progress(
		func(s *script, win *window.Window[int64]) {
			for told := false; !told; {
				var err error
				told, err = win.TestNotify(0, 1)
				s.OK(err)
			}
		},
		func(s *script, win *window.Window[int64]) { s.OK(win.PutNotify([]int64{1}, 0, 0, 0)) }))
	progressLock = register("progress in Lock", progress(
		func(s *script, win *window.Window[int64]) {
			s.OK(take(s.Ctx, win, window.Shared, 0))
			s.OK(win.Unlock(s.Ctx, 0))
		},
		func(s *script, win *window.Window[int64]) {
			s.OK(win.Unlock(s.Ctx, 0))
			s.OK(take(s.Ctx, win, window.Shared, 0))
		}))
)

// TestProgress looks that no rank waits with accumulates held back for one that waits for
// them.
func TestProgress(t *testing.T) {
	busy.Acquire(t)
	for turn, name := range []string{progressNotify, progressTest, progressLock} {
		t.Run(name, func(t *testing.T) { runInSome(t, turn, name, 2) })
	}
}
