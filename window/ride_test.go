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
var rideAll = register("operations that ride with locks", func(s *script) {
	const rounds = 50
	win := allocate[int64](s, 8)
	for round := range rounds {
		var read, old [1]int64
		s.ok(win.Lock(s.ctx, window.Exclusive, 0))
		s.ok(win.Get(read[:], 0, 0))
		s.ok(win.Flush(s.ctx, 0))
		s.ok(win.Put([]int64{read[0] + 1}, 0, 0))
		s.ok(win.Unlock(s.ctx, 0))

		s.ok(win.Lock(s.ctx, window.Shared, 0))
		s.ok(win.Accumulate(window.Sum, []int64{1}, 0, 1))
		s.ok(win.FetchAndOp(window.Sum, 1, &old[0], 0, 2))
		s.ok(win.Unlock(s.ctx, 0))
		s.check(old[0] >= int64(round), "fetched %d in round %d", old[0], round)

		s.ok(win.Lock(s.ctx, window.Exclusive, 0))
		request, err := win.RGet(read[:], 0, 3)
		s.ok(err)
		s.ok(request.Wait(s.ctx))
		s.ok(win.PutNotify([]int64{read[0] + 1}, 0, 3, 0))
		s.ok(win.Unlock(s.ctx, 0))
	}
	total := int64(rounds * s.w.Size())
	if s.w.Rank() == 0 {
		s.ok(win.WaitNotify(s.ctx, 0, uint64(total)))
	}
	s.ok(s.w.Barrier(s.ctx))
	if s.w.Rank() == 0 {
		equal(s, "rank 0's part", win.Local()[:4], []int64{total, total, total, total})
	}
	s.ok(win.Close())
})

func TestRide(t *testing.T) { jobtest.Run(t, 3, rideAll) }

// rideCutShort has rank 0 put under a lock that rank 1 has itself: Unlock waits for it, is
// cut short, and goes on. The operations on which it waits are done once.
var rideCutShort = register("an Unlock cut short", func(s *script) {
	win := allocate[int64](s, 8)
	if s.w.Rank() == 1 {
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(jobtest.Hold("locked"))
		s.check(win.Local()[0] == 0, "%d under the lock of another", win.Local()[0])
		s.ok(win.Unlock(s.ctx, 1))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Close())
		return
	}
	s.ok(s.w.Barrier(s.ctx))
	ended, end := context.WithCancel(s.ctx)
	end()
	s.ok(win.Lock(s.ctx, window.Exclusive, 1))
	s.ok(win.Accumulate(window.Sum, []int64{5}, 1, 0))
	s.fails(win.Unlock(ended, 1), context.Canceled)
	s.fails(win.Put([]int64{6}, 1, 0), epoch.ErrChanging)
	s.fails(win.Flush(s.ctx, 1), epoch.ErrBusy)
	s.fails(win.Lock(s.ctx, window.Shared, 1), epoch.ErrEpochOpen)
	s.fails(win.Unlock(ended, 1), context.Canceled)
	jobtest.Signal("waiting")
	s.ok(win.Unlock(s.ctx, 1))
	var old int64
	s.ok(win.Lock(s.ctx, window.Shared, 1))
	s.ok(win.FetchAndOp(window.NoOp, 0, &old, 1, 0))
	s.ok(win.Unlock(s.ctx, 1))
	s.check(old == 5, "element is %d, want 5", old)
	s.ok(s.w.Barrier(s.ctx))
	s.ok(win.Close())
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
	if s.w.Rank() == 1 {
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Unlock(s.ctx, 1))
		s.ok(win.Lock(s.ctx, window.Exclusive, 1))
		s.ok(win.Unlock(s.ctx, 1))
	} else {
		s.ok(s.w.Barrier(s.ctx))
		ended, end := context.WithCancel(s.ctx)
		end()
		for range 3 {
			s.ok(win.Lock(s.ctx, window.Shared, 1))
			s.fails(win.Flush(ended, 1), context.Canceled)
			s.ok(win.Unlock(s.ctx, 1))
		}
		s.ok(s.w.Barrier(s.ctx))
	}
	s.ok(win.Close())
})

func TestWishTakenBack(t *testing.T) { jobtest.Apart(t, 2, rideWish) }
