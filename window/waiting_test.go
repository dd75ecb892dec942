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
		self := groupOf(s, win, 1-s.w.Rank())
		if s.w.Rank() == 1 {
			s.ok(take(s.ctx, win, window.Exclusive, 0))
		} else {
			s.ok(win.Post(s.ctx, self))
		}
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Lock(s.ctx, window.Shared, 1))
		if s.w.Rank() == 0 {
			for range 5 {
				s.ok(win.Accumulate(window.Sum, []int64{1}, 1, 7))
			}
			wait(s, win)
		} else {
			for sum := int64(0); sum != 5; {
				s.ok(win.FetchAndOp(window.NoOp, 0, &sum, 1, 7))
				s.ok(win.FlushLocal(s.ctx, 1))
			}
			release(s, win)
		}
		s.ok(win.Unlock(s.ctx, 1))
		if s.w.Rank() == 1 {
			s.ok(win.Unlock(s.ctx, 0))
			s.ok(win.Start(s.ctx, self))
			s.ok(win.Complete(s.ctx))
		} else {
			s.ok(win.Wait(s.ctx))
		}
		s.ok(win.Close())
	}
}

var (
	progressNotify = register("progress in WaitNotify", progress(
		func(s *script, win *window.Window[int64]) { s.ok(win.WaitNotify(s.ctx, 0, 1)) },
		func(s *script, win *window.Window[int64]) { s.ok(win.PutNotify([]int64{1}, 0, 0, 0)) }))
	progressTest = register("progress in TestNotify", progress(
		func(s *script, win *window.Window[int64]) {
			for told := false; !told; {
				var err error
				told, err = win.TestNotify(0, 1)
				s.ok(err)
			}
		},
		func(s *script, win *window.Window[int64]) { s.ok(win.PutNotify([]int64{1}, 0, 0, 0)) }))
	progressLock = register("progress in Lock", progress(
		func(s *script, win *window.Window[int64]) {
			s.ok(take(s.ctx, win, window.Shared, 0))
			s.ok(win.Unlock(s.ctx, 0))
		},
		func(s *script, win *window.Window[int64]) {
			s.ok(win.Unlock(s.ctx, 0))
			s.ok(take(s.ctx, win, window.Shared, 0))
		}))
)

// TestProgress looks that no rank waits with accumulates held back for one that waits for
// them.
func TestProgress(t *testing.T) {
	for turn, name := range []string{progressNotify, progressTest, progressLock} {
		t.Run(name, func(t *testing.T) { runInSome(t, turn, name, 2) })
	}
}
