package window_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// elsewhere has the last rank be in one call that needs all ranks and the others in another, which their contexts cut short and
// they make again until its errors have told each of them where that is. Then they follow it.
var elsewhere = register("elsewhere", func(s *script) {
	win, board := allocate[int64](s, 1), allocate[int64](s, 1, window.Notifications(1))
	s.OK(board.LockAll(s.Ctx))
	fence := func(ctx context.Context) error { return win.Fence(ctx, window.NoSucceed) }
	last := s.World.Size() - 1
	told := func(call func(ctx context.Context) error, text string) {
		// Each wait is longer than the one before. A rank looks where others are when it has slept for a while, and what it
		// waits for may be another rank that has to sleep for a while first. If all waits were short, and of one length,
		// the ranks might miss one another for long.
		patience := 300 * time.Millisecond
		for seen, together := false, false; !together; patience = patience * 3 / 2 {
			short, stop := context.WithTimeout(s.Ctx, patience) // expires
			err := call(short)
			stop()
			if s.Ctx.Err() != nil {
				s.OK(fmt.Errorf("wants to be told %q of rank %d, is told %w (seen before: %v)", text, last, err, seen))
			}
			s.Fails(err, context.DeadlineExceeded)
			if !seen && strings.Contains(err.Error(), fmt.Sprintf("rank %d", last)) && strings.HasSuffix(err.Error(), text) {
				seen = true
				for rank := range last {
					if rank != s.World.Rank() {
						s.OK(board.PutNotify(nil, rank, 0, 0))
						s.OK(board.Flush(s.Ctx, rank))
					}
				}
			}
			if together = seen; seen {
				together, err = board.TestNotify(0, uint64(last-1))
				s.OK(err)
			}
		}
	}
	s.OK(fence(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	if s.World.Rank() == last {
		s.OK(fence(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(fence(s.Ctx))
		s.OK(win.Close())
		s.OK(s.World.Barrier(s.Ctx))
	} else {
		// Rank 1 is late by as long as rank 0 sleeps before it looks. So the last look of each of its waits may find that
		// rank 0 has just begun the next one.
		if s.World.Rank() == 1 {
			time.Sleep(205 * time.Millisecond) // computes
		}
		told(s.World.Barrier, "is in window.Fence")
		s.OK(fence(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		told(fence, "is in Barrier")
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(fence(s.Ctx))
		told(s.World.Barrier, "is in window.Close")
		s.OK(win.Close())
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(board.UnlockAll(s.Ctx))
	s.OK(board.Close())
})

func TestElsewhere(t *testing.T) {
	t.Parallel()
	for _, f := range jobtest.Forms(3) {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			f.Run(t, 3, elsewhere)
		})
	}
	t.Run("a core each", func(t *testing.T) {
		t.Parallel()
		jobtest.Goroutines(t, 2, elsewhere)
	})
}
