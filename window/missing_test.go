package window_test

import (
	"context"
	"strings"
	"testing"

	"github.com/onesided/rma/window"
)

// Calls that their context has cut short say what they waited for.
var missing = registerShared("what is missing", []int{2}, func(s *script) {
	win := allocate[int64](s, 1, window.Notifications(2))
	if s.World.Rank() == 1 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 0))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.WaitNotify(s.Ctx, 1, 1))
		s.OK(win.Unlock(s.Ctx, 0))
		s.OK(win.Start(s.Ctx, groupOf(s, win, 0)))
		s.OK(win.Complete(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Close())
		return
	}
	s.OK(s.World.Barrier(s.Ctx))
	ended, end := context.WithCancel(s.Ctx)
	end()
	says := func(err error, text string) {
		s.Fails(err, context.Canceled)
		s.Check(strings.Contains(err.Error(), text), "%q does not say %q", err, text)
	}
	says(win.WaitNotify(ended, 0, 3), "slot 0 has not got 3 notifications")
	s.OK(win.Post(s.Ctx, groupOf(s, win, 1)))
	says(win.Wait(ended), "it waits for rank 1")
	if s.World.Mapped(1) {
		// Else rank 1 has not asked for it yet.
		says(win.Lock(ended, window.Exclusive, 0), "rank 1 has the lock of rank 0")
		says(s.World.Barrier(ended), "it waits for rank 1")
	}
	s.OK(win.Lock(s.Ctx, window.Shared, 1))
	s.OK(win.PutNotify([]int64{1}, 1, 0, 1))
	s.OK(win.Unlock(s.Ctx, 1))
	s.OK(win.Wait(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Close())
})

func TestMissing(t *testing.T) { runShared(t, missing) }
