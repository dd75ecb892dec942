package window_test

import (
	"context"
	"testing"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// delay has this rank serve what jobtest.Crowd and tell send.
func (s *script) delay() (later *jobtest.Busy, stop func()) {
	return jobtest.ServeBusy(job.Of(s.World))
}

// tell sends a rank a message for a service of jobtest.
func (s *script) tell(rank int, service uint32) *job.Link {
	link, err := jobtest.Tell(job.Of(s.World), rank, service)
	s.OK(err)
	return link
}

// crowd has a rank busy, and no more room on the way to it until it is busy no more.
func (s *script) crowd(rank int) { s.OK(jobtest.Crowd(s.Ctx, job.Of(s.World), rank)) }

func runFull(t *testing.T, name string) {
	t.Helper()
	job := jobtest.StartWith(t, 2, name, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
	job.Await(1, "full")
	job.Await(0, "cut short")
	job.Release(1)
	for rank, err := range job.Wait() {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// registerFull registers what rank 0 calls while rank 1 takes no messages: first with a context that has ended and then,
// after "cut short", with one that goes on. Rank 1 calls serve meanwhile.
func registerFull(name string, serve func(s *script, win *window.Window[int64]), call func(s *script, ended context.Context, win *window.Window[int64])) string {
	return register(name, func(s *script) {
		later, stop := s.delay()
		defer stop()
		if s.World.Rank() == 1 {
			go func() {
				_ = jobtest.Hold("full")
				later.Store(true)
			}()
		}
		ended, end := context.WithCancel(s.Ctx)
		end()
		win := allocate[int64](s, 1)
		if s.World.Rank() == 0 {
			call(s, ended, win)
		} else {
			serve(s, win)
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Close())
	})
}

// idle serves a call for which the target has nothing to do.
func idle(*script, *window.Window[int64]) {}

// Calls whose context ends do not wait for room on the way to a rank that takes no
// messages, and may be made again.
var fullComplete = registerFull("full link, complete", func(s *script, win *window.Window[int64]) {
	group, err := win.Group(0)
	s.OK(err)
	s.OK(win.Post(s.Ctx, group))
	s.OK(win.Wait(s.Ctx))
	s.Check(win.Local()[0] == 4, "%d in the window, want 4", win.Local()[0])
}, func(s *script, ended context.Context, win *window.Window[int64]) {
	group, err := win.Group(1)
	s.OK(err)
	s.OK(win.Start(s.Ctx, group))
	s.OK(win.Put([]int64{4}, 1, 0))
	s.crowd(1)
	s.Fails(win.Complete(ended), context.Canceled)
	jobtest.Signal("cut short")
	s.OK(win.Complete(s.Ctx))
})

func TestCompleteWithoutRoom(t *testing.T) { runFull(t, fullComplete) }

var fullLock = registerFull("full link, lock", idle, func(s *script, ended context.Context, win *window.Window[int64]) {
	s.crowd(1)
	s.Fails(take(ended, win, window.Exclusive, 1), context.Canceled)
	s.Fails(win.LockAll(ended), context.Canceled)
	jobtest.Signal("cut short")
	s.OK(win.LockAll(s.Ctx))
	s.OK(win.UnlockAll(s.Ctx))
})

func TestLockWithoutRoom(t *testing.T) { runFull(t, fullLock) }

var fullFlush = registerFull("full link, flush", idle, func(s *script, ended context.Context, win *window.Window[int64]) {
	s.OK(win.LockAll(s.Ctx))
	s.crowd(1)
	s.Fails(win.Flush(ended, 1), context.Canceled)
	jobtest.Signal("cut short")
	s.OK(win.Flush(s.Ctx, 1))
	s.OK(win.UnlockAll(s.Ctx))
})

func TestFlushWithoutRoom(t *testing.T) { runFull(t, fullFlush) }

// A wait for a notification, which has what is queued sent first, and a call that does not block.
var fullNotify = registerFull("full link, notify", func(s *script, win *window.Window[int64]) {
	s.OK(s.World.Barrier(s.Ctx))
	s.Check(win.Local()[0] == 6, "%d in the window, want 6", win.Local()[0])
}, func(s *script, ended context.Context, win *window.Window[int64]) {
	s.OK(win.LockAll(s.Ctx))
	s.crowd(1)
	s.OK(win.Put([]int64{6}, 1, 0))
	s.Fails(win.WaitNotify(ended, 0, 1), context.Canceled)
	there, err := win.TestNotify(0, 1)
	s.OK(err)
	s.Check(!there, "a notification that nobody has sent")
	jobtest.Signal("cut short")
	s.OK(win.Flush(s.Ctx, 1))
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.UnlockAll(s.Ctx))
})

func TestNotifyWithoutRoom(t *testing.T) { runFull(t, fullNotify) }

// A Request whose operation has not left has it sent by the next Wait when one was in vain.
var fullRequest = registerFull("full link, request", func(s *script, win *window.Window[int64]) {
	s.OK(s.World.Barrier(s.Ctx))
	s.Check(win.Local()[0] == 5, "%d in the window, want 5", win.Local()[0])
}, func(s *script, ended context.Context, win *window.Window[int64]) {
	s.OK(win.LockAll(s.Ctx))
	s.crowd(1)
	request, err := win.RPut([]int64{5}, 1, 0)
	s.OK(err)
	s.Fails(request.Wait(ended), context.Canceled)
	done, err := request.Test()
	s.OK(err)
	s.Check(!done, "complete, though it has not left")
	jobtest.Signal("cut short")
	s.OK(request.Wait(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.UnlockAll(s.Ctx))
})

func TestRequestWithoutRoom(t *testing.T) { runFull(t, fullRequest) }
