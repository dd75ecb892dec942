package window_test

import (
	"runtime"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideLeft has rank 0 complete an epoch and leave before rank 1 posts: what it has completed
// is done all the same, and Wait returns.
var rideLeft = register("leaving behind what rides with Complete", func(s *script) {
	win := allocate[int64](s, 8)
	other := groupOf(s, win, 1-s.World.Rank())
	if s.World.Rank() == 0 {
		s.OK(win.Start(s.Ctx, other))
		s.OK(win.Put([]int64{7}, 1, 0))
		s.OK(win.Accumulate(window.Sum, []int64{8}, 1, 1))
		s.OK(win.Complete(s.Ctx))
		return
	}
	for !job.Of(s.World).Gone(0) {
		job.Of(s.World).Poll()
		runtime.Gosched()
	}
	s.OK(win.Post(s.Ctx, other))
	s.OK(win.Wait(s.Ctx))
	equal(s, "what a rank that has left did", win.Local()[:2], []int64{7, 8})
})

func TestRideLeft(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideLeft) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideLeft) })
}

// rideClosed has rank 0 close its World with an operation that waits for a post: its Request
// tells that the window is closed, and looks at no memory that is gone.
var rideClosed = register("a request after the end", func(s *script) {
	win := allocate[int64](s, 1<<16)
	if s.World.Rank() != 0 {
		s.OK(s.World.Barrier(s.Ctx))
		return
	}
	s.OK(win.Start(s.Ctx, groupOf(s, win, 1)))
	request, err := win.RPut([]int64{7}, 1, 0)
	s.OK(err)
	s.OK(s.World.Barrier(s.Ctx))
	s.Fails(s.World.Close(), epoch.ErrEpochOpen)
	_, err = request.Test()
	s.Fails(err, epoch.ErrClosed)
	s.Fails(request.Wait(s.Ctx), epoch.ErrClosed)
	_, err = win.TestNotify(0, 1)
	s.Fails(err, epoch.ErrClosed)
})

func TestRideClosed(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, rideClosed) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, rideClosed) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 3, rideClosed) })
}

// rideDead has the victim die when rank 0 wishes for its lock and it does not know: rank 0 has
// the lock of another rank all the same, and the epoch of the victim ends with its failure.
var rideDead = register("a lock of the dead that is wanted", func(s *script) {
	win := allocate[int64](s, 8)
	if s.World.Rank() == 0 {
		s.OK(win.Lock(s.Ctx, window.Shared, victim))
	}
	s.OK(s.World.Barrier(s.Ctx))
	jobtest.Signal("ready")
	switch s.World.Rank() {
	case victim:
		<-s.Ctx.Done()
	case 0:
		for s.World.Err(victim) == nil {
			job.Of(s.World).Poll()
			runtime.Gosched()
		}
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		s.OK(win.PutNotify([]int64{5}, 2, 0, 0))
		s.OK(win.Unlock(s.Ctx, 2))
		s.Lost(win.Unlock(s.Ctx, victim), victim)
	default:
		for told := false; !told; runtime.Gosched() {
			// That the victim has failed it tells too.
			told, _ = win.TestNotify(0, 1)
			s.OK(s.World.Err(0))
		}
		equal(s, "what was put", win.Local()[:1], []int64{5})
	}
	s.OK(win.Close())
})

func TestRideDead(t *testing.T) {
	jobtest.StartWith(t, deathRanks, rideDead, func(int) []string { return []string{"RMA_DEVICE=tcp"} }).Killed(victim)
}
