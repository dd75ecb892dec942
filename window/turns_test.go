package window_test

import (
	"context"
	"testing"
	"time"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// lockTurns has ranks take turns at the lock of rank 0 until each has had it some times. Those that map it come when the
// others are at it.
var lockTurns = register("turns at a lock", func(s *script) {
	const turns = 20
	win := allocate[int64](s, 1)
	s.ok(s.w.Barrier(s.ctx))
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if s.w.Mapped(0) {
		time.Sleep(100 * time.Millisecond)
	}
	ended := int64(0)
	for taken := 1; ended < int64(s.w.Size()); taken++ {
		s.ok(win.Lock(ctx, window.Exclusive, 0))
		for range 20 {
			s.ok(win.FetchAndOp(window.NoOp, 0, &ended, 0, 0))
			s.ok(win.Flush(ctx, 0))
		}
		if taken == turns {
			s.ok(win.Accumulate(window.Sum, []int64{1}, 0, 0))
		}
		s.ok(win.Unlock(ctx, 0))
	}
	s.ok(win.Close())
})

// Nobody starves where ranks take turns at a lock, whether it maps the lock or asks for it.
func TestLockTurns(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 6, lockTurns) })
	t.Run("TCP", func(t *testing.T) { jobtest.TCP(t, 6, lockTurns) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 4, lockTurns) })
}
