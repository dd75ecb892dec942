package window_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
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
