package window_test

import (
	"context"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// rideAll has every rank add to elements of rank 0 by a Get and a Put under an exclusive
// lock, as one message where it can be and as several where the lock is needed before.
var rideAll = registerShared("operations that ride with locks", []int{3}, func(s *script) {
	const rounds = 50
	win := allocate[int64](s, 8)
	for round := range rounds {
		var read, old [1]int64
		s.OK(win.Lock(s.Ctx, window.Exclusive, 0))
		s.OK(win.Get(read[:], 0, 0))
		s.OK(win.Flush(s.Ctx, 0))
		s.OK(win.Put([]int64{read[0] + 1}, 0, 0))
		s.OK(win.Unlock(s.Ctx, 0))

		s.OK(win.Lock(s.Ctx, window.Shared, 0))
		s.OK(win.Accumulate(window.Sum, []int64{1}, 0, 1))
		s.OK(win.FetchAndOp(window.Sum, 1, &old[0], 0, 2))
		s.OK(win.Unlock(s.Ctx, 0))
		s.Check(old[0] >= int64(round), "fetched %d in round %d", old[0], round)

		s.OK(win.Lock(s.Ctx, window.Exclusive, 0))
		request, err := win.RGet(read[:], 0, 3)
		s.OK(err)
		s.OK(request.Wait(s.Ctx))
		s.OK(win.PutNotify([]int64{read[0] + 1}, 0, 3, 0))
		s.OK(win.Unlock(s.Ctx, 0))
	}
	total := int64(rounds * s.World.Size())
	if s.World.Rank() == 0 {
		s.OK(win.WaitNotify(s.Ctx, 0, uint64(total)))
	}
	s.OK(s.World.Barrier(s.Ctx))
	if s.World.Rank() == 0 {
		equal(s, "rank 0's part", win.Local()[:4], []int64{total, total, total, total})
	}
	s.OK(win.Close())
})

func TestRide(t *testing.T) {
	busy.Acquire(t)
	runShared(t, rideAll)
}

// rideCutShort has rank 0 put under a lock that rank 1 has itself: Unlock waits for it, is
// cut short, and goes on. The operations on which it waits are done once.
var rideCutShort = register("an Unlock cut short", func(s *script) {
	win := allocate[int64](s, 8)
	if s.World.Rank() == 1 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(jobtest.Hold("locked"))
		s.Check(win.Local()[0] == 0, "%d under the lock of another", win.Local()[0])
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Close())
		return
	}
	s.OK(s.World.Barrier(s.Ctx))
	ended, end := context.WithCancel(s.Ctx)
	end()
	s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
	s.OK(win.Accumulate(window.Sum, []int64{5}, 1, 0))
	s.Fails(win.Unlock(ended, 1), context.Canceled)
	s.Fails(win.Put([]int64{6}, 1, 0), epoch.ErrChanging)
	s.Fails(win.Flush(s.Ctx, 1), epoch.ErrBusy)
	s.Fails(win.Lock(s.Ctx, window.Shared, 1), epoch.ErrEpochOpen)
	s.Fails(win.Unlock(ended, 1), context.Canceled)
	jobtest.Signal("waiting")
	s.OK(win.Unlock(s.Ctx, 1))
	var old int64
	s.OK(win.Lock(s.Ctx, window.Shared, 1))
	s.OK(win.FetchAndOp(window.NoOp, 0, &old, 1, 0))
	s.OK(win.Unlock(s.Ctx, 1))
	s.Check(old == 5, "element is %d, want 5", old)
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Close())
})

func TestUnlockCutShort(t *testing.T) {
	job := jobtest.StartWith(t, 2, rideCutShort, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
	job.Await(1, "locked")
	job.Await(0, "waiting")
	job.Release(1)
	for rank, err := range job.Wait() {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// rideWish has rank 0 wish for a lock that rank 1 has: a Flush that is cut short has not got
// it, an Unlock takes the wish back, and others can have the lock.
var rideWish = register("a wish taken back", func(s *script) {
	win := allocate[int64](s, 8)
	if s.World.Rank() == 1 {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(win.Unlock(s.Ctx, 1))
	} else {
		s.OK(s.World.Barrier(s.Ctx))
		ended, end := context.WithCancel(s.Ctx)
		end()
		for range 3 {
			s.OK(win.Lock(s.Ctx, window.Shared, 1))
			s.Fails(win.Flush(ended, 1), context.Canceled)
			s.OK(win.Unlock(s.Ctx, 1))
		}
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(win.Close())
})

func TestWishTakenBack(t *testing.T) { jobtest.Apart(t, 2, rideWish) }
