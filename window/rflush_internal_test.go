package window

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// A piggybacked Complete, whose target has not posted, has no grant. A flush without operations after it sends a
// request.
var flushBehindComplete = jobtest.Register("a flush behind a Complete that rode", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 1)
	if err != nil {
		return err
	}
	group, err := win.Group(1 - w.Rank())
	err = errors.Join(err, w.Barrier(ctx))
	if w.Rank() == 0 {
		err = errors.Join(err, win.Start(ctx, group), win.Put([]int64{1}, 1, 0), win.Complete(ctx), w.Barrier(ctx), win.Lock(ctx, Shared, 1))
		r, failed := win.RFlush(1)
		if r.late == nil && (r.mark == job.Mark{} || r.mark == job.GrantMark(win.core.tickets[1].Load())) {
			failed = errors.Join(failed, errors.New("the flush waits for nothing"))
		}
		err = errors.Join(err, failed, r.Wait(ctx), win.Unlock(ctx, 1))
	} else {
		// It rides as a rule. A Complete that does not waits for the Post.
		for begun := time.Now(); !win.core.server.waiting.Load() && time.Since(begun) < await.Limit; runtime.Gosched() { // computes
			job.Of(w).Poll()
		}
		err = errors.Join(err, win.Post(ctx, group), w.Barrier(ctx), win.Wait(ctx))
	}
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

// An operation that is rejected after a flush, which was piggybacked on its lock request, does not belong to that
// flush. This holds even if the rejection arrives before the wait for the flush.
var refusedBehindRide = jobtest.Register("a flush that rode, and a refusal behind it", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 1)
	if err == nil && w.Rank() == 1 {
		// Nothing is granted before it has ridden.
		err = win.Lock(ctx, Exclusive, 1)
	}
	if err = errors.Join(err, w.Barrier(ctx)); err != nil {
		return err
	}
	if w.Rank() == 1 {
		err := errors.Join(w.Barrier(ctx), win.Unlock(ctx, 1), w.Barrier(ctx))
		win.core.server.end()
		return errors.Join(err, w.Barrier(ctx), w.Barrier(ctx))
	}
	err = errors.Join(win.Lock(ctx, Shared, 1), win.Accumulate(Sum, []int64{1}, 1, 0))
	r, failed := win.RFlush(1)
	d := win.core.peers[1].Load().deferred
	if failed == nil && r.late == nil {
		failed = errors.New("the flush has not ridden")
	}
	err = errors.Join(err, failed, w.Barrier(ctx), d.awaitGrant(ctx), w.Barrier(ctx), w.Barrier(ctx), win.Accumulate(Sum, []int64{1}, 1, 0))
	// It is served, and what was refused has come.
	behind, failed := win.RFlush(1)
	err = errors.Join(err, failed, d.link.Reach(ctx, behind.mark, 1<<30), r.Wait(ctx))
	var refused *job.RejectionError
	if e := behind.Wait(ctx); !errors.As(e, &refused) {
		err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
	}
	return errors.Join(err, w.Barrier(ctx))
})

// firstFlush locks rank 1 and begins a flush that rides with the lock, or does not. One that is to ride and does not,
// because the lock was granted before it began, is tried again in a new epoch.
func firstFlush(ctx context.Context, win *Window[int64], rides bool) (Request, error) {
	for {
		err := errors.Join(ctx.Err(), win.Lock(ctx, Shared, 1), win.Accumulate(Sum, []int64{1}, 1, 0))
		if !rides {
			err = errors.Join(err, win.Flush(ctx, 1), win.Accumulate(Sum, []int64{1}, 1, 0))
		}
		r, failed := win.RFlush(1)
		if err = errors.Join(err, failed); err != nil || (r.late != nil) == rides {
			return r, err
		}
		if err := errors.Join(r.Wait(ctx), win.Unlock(ctx, 1)); err != nil {
			return r, err
		}
	}
}

// A flush of one epoch, piggybacked on its lock request or not, reports no rejection of the next epoch. The flush of
// that one is piggybacked, and reports it.
func refusedInNext(rides bool) func(ctx context.Context, w *world.World) error {
	return func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 1)
		if err = errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		if w.Rank() == 1 {
			// Nothing is granted in the second epoch before its flush has begun, which therefore rides.
			err = errors.Join(w.Barrier(ctx), win.Lock(ctx, Exclusive, 1), win.Flush(ctx, 1), w.Barrier(ctx))
			return errors.Join(err, w.Barrier(ctx), win.Unlock(ctx, 1), w.Barrier(ctx))
		}
		first, failed := firstFlush(ctx, win, rides)
		d := win.core.peers[1].Load().deferred
		err = errors.Join(failed, win.Unlock(ctx, 1), w.Barrier(ctx), w.Barrier(ctx), win.Lock(ctx, Shared, 1))
		o, failed := d.join(aggregate.Accumulate, 8)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		// It is outside of the window, which only the target looks at here.
		o.Offset, o.Op, o.Element, o.Value[0] = 1<<20, Sum, win.view.kind, 1
		err = d.queued()
		second, failed := win.RFlush(1)
		if failed == nil && second.late == nil {
			failed = errors.New("the flush does not ride with a lock that is not granted")
		}
		err = errors.Join(err, failed, w.Barrier(ctx), d.awaitGrant(ctx), first.Wait(ctx))
		var refused *job.RejectionError
		if e := second.Wait(ctx); !errors.As(e, &refused) {
			err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
		}
		return errors.Join(err, win.Unlock(ctx, 1), w.Barrier(ctx))
	}
}

var (
	refusedBehindMark  = jobtest.Register("a flush, and a refusal in the next epoch", refusedInNext(false))
	refusedBehindGrant = jobtest.Register("a flush that rode, and a refusal in the next epoch", refusedInNext(true))
)

func TestRefusedInNextEpoch(t *testing.T) {
	jobtest.Apart(t, 2, refusedBehindMark)
	jobtest.Apart(t, 2, refusedBehindGrant)
}

func TestRefusedBehindRide(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, refusedBehindRide) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, refusedBehindRide) })
}

func TestRFlushBehindComplete(t *testing.T) { jobtest.Apart(t, 2, flushBehindComplete) }
