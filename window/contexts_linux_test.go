package window_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Ranks that share memory, and so their locks and posts, but reach the parts of others by messages: a lock is given back, and a
// post told of, when the operations are complete.
var callsCutShortUnreachable = register("calls cut short without process_vm", func(s *script) {
	if s.World.Rank() == stuckRank {
		s.OK(jobtest.Refuse(unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
	}
	cutShort(s, true, func(count int) *window.Window[int64] {
		win, err := window.Create(s.Ctx, s.World, make([]int64, count))
		s.OK(err)
		return win
	})
})

func TestCallsCutShortUnreachable(t *testing.T) {
	busy.Acquire(t)
	jobtest.Processes(t, cutRanks, callsCutShortUnreachable)
}

// rejectedPost has a Post complete operations before it notifies freeRank, which rejects one of them: Post returns the
// rejection, and freeRank has the exposure all the same.
var rejectedPost = register("a rejection in a Post without process_vm", func(s *script) {
	if s.World.Rank() == stuckRank {
		s.OK(jobtest.Refuse(unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
	}
	win, err := window.Create(s.Ctx, s.World, make([]int64, 1))
	s.OK(err)
	switch s.World.Rank() {
	case callerRank:
		s.OK(win.LockNow(s.Ctx, window.Shared, freeRank))
		s.OK(win.Put([]int64{1}, freeRank, 0))
		s.OK(window.Reject(win, freeRank))
		err := win.Post(s.Ctx, groupOf(s, win, freeRank))
		var rejected *world.RejectionError
		s.Check(errors.As(err, &rejected) && rejected.Rank == freeRank, "error is %v, want a *world.RejectionError of rank %d", err, freeRank)
		s.OK(win.Wait(s.Ctx))
		s.OK(win.Unlock(s.Ctx, freeRank))
	case freeRank:
		s.OK(win.Start(s.Ctx, groupOf(s, win, callerRank)))
		s.OK(win.Complete(s.Ctx))
	}
	s.OK(win.Close())
})

func TestRejectedPost(t *testing.T) { jobtest.Processes(t, cutRanks, rejectedPost) }
