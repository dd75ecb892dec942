package window_test

import (
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/testsize"
)

// No wait for notifications succeeds on a closed window: neither one that has begun before, for notifications like
// earlier ones, nor a later one.
var notifyOverClose = registerShared("notification over close", []int{1, 2}, func(s *script) {
	const waiters = 3
	for range testsize.N(5) {
		win := allocate[int64](s, 4)
		s.OK(win.LockAll(s.Ctx))
		s.OK(win.PutNotify([]int64{1}, s.World.Rank(), 0, 3))
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.WaitNotify(s.Ctx, 3, 1))
		waiting, ended := make(chan bool, waiters), make(chan error, waiters)
		for range waiters {
			go func() {
				waiting <- true
				ended <- win.WaitNotify(s.Ctx, 3, 1)
			}()
		}
		polled := make(chan error)
		go func() {
			for {
				if told, err := win.TestNotify(3, 1); told || err != nil {
					polled <- err
					return
				}
			}
		}()
		for range waiters {
			<-waiting
		}
		s.OK(win.Close())
		for range waiters {
			s.Fails(<-ended, epoch.ErrClosed)
		}
		s.Fails(<-polled, epoch.ErrClosed)
		s.Fails(win.WaitNotify(s.Ctx, 3, 1), epoch.ErrClosed)
	}
})

// TestNotifyOverClose closes windows while goroutines look for notifications.
func TestNotifyOverClose(t *testing.T) {
	busy.Acquire(t)
	runShared(t, notifyOverClose)
}

// A count that no rank can have sent is never there.
var hugeCounts = registerShared("huge counts of notifications", []int{1}, func(s *script) {
	win := allocate[int64](s, 4)
	for _, count := range []uint64{1, 1 << 63, 1<<64 - 1} {
		told, err := win.TestNotify(0, count)
		s.OK(err)
		s.Check(!told, "told of %d notifications", count)
	}
	told, err := win.TestNotify(0, 0)
	s.OK(err)
	s.Check(told, "not told of none")
	s.OK(win.Close())
})

func TestHugeCounts(t *testing.T) {
	busy.Acquire(t)
	runShared(t, hugeCounts)
}
