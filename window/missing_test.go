package window_test

import (
	"context"
	"strings"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// Calls that their context has cut short say what they waited for.
var missing = register("what is missing", func(s *script) {
	win := allocate[int64](s, 1, window.Notifications(2))
	if s.w.Rank() == 1 {
		s.ok(win.Lock(s.ctx, window.Exclusive, 0))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.WaitNotify(s.ctx, 1, 1))
		s.ok(win.Unlock(s.ctx, 0))
		s.ok(win.Start(s.ctx, groupOf(s, win, 0)))
		s.ok(win.Complete(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Close())
		return
	}
	s.ok(s.w.Barrier(s.ctx))
	ended, end := context.WithCancel(s.ctx)
	end()
	says := func(err error, text string) {
		s.fails(err, context.Canceled)
		s.check(strings.Contains(err.Error(), text), "%q does not say %q", err, text)
	}
	says(win.WaitNotify(ended, 0, 3), "slot 0 has not got 3 notifications")
	s.ok(win.Post(s.ctx, groupOf(s, win, 1)))
	says(win.Wait(ended), "it waits for rank 1")
	if s.w.Mapped(1) {
		// Else rank 1 has not asked for it yet.
		says(win.Lock(ended, window.Exclusive, 0), "rank 1 has the lock of rank 0")
		says(s.w.Barrier(ended), "rank 1 has not come")
	}
	s.ok(win.Lock(s.ctx, window.Shared, 1))
	s.ok(win.PutNotify([]int64{1}, 1, 0, 1))
	s.ok(win.Unlock(s.ctx, 1))
	s.ok(win.Wait(s.ctx))
	s.ok(s.w.Barrier(s.ctx))
	s.ok(win.Close())
})

func TestMissing(t *testing.T) { jobtest.Run(t, 2, missing) }
