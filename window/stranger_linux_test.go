package window_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

const (
	strangers = 11
	// strange is a rank that stops, and which caller has never met: both are far from rank 0.
	strange, caller = 10, 5
)

// besideStranger has a rank call what needs one of its host that is stopped, and which it has never met. A call that
// waited for the stranger, and not for its context, would hang.
var besideStranger = jobtest.RegisterWith("calls beside a stranger that is stopped", func() ([]world.Option, error) {
	return []world.Option{world.WithPeerTimeout(2 * await.Limit)}, nil
}, scripted(func(s *script) {
	win := allocate[int64](s, 1)
	group, err := win.Group(strange)
	s.OK(err)
	s.OK(jobtest.Hold("ready"))
	switch s.World.Rank() {
	case strange:
		s.OK(jobtest.Stop())
	case caller:
		s.OK(jobtest.Hold("stopped"))
		for _, call := range []func(ctx context.Context) error{
			func(ctx context.Context) error { return win.Lock(ctx, window.Exclusive, strange) },
			func(ctx context.Context) error { return win.LockAll(ctx) },
			func(ctx context.Context) error { return win.Start(ctx, group) },
			func(ctx context.Context) error { return win.Post(ctx, group) },
		} {
			ctx, cancel := context.WithTimeout(s.Ctx, 100*time.Millisecond) // expires
			s.Fails(call(ctx), context.DeadlineExceeded)
			cancel()
		}
		s.OK(jobtest.Hold("called"))
		s.OK(win.Lock(s.Ctx, window.Exclusive, strange))
		s.OK(win.Put([]int64{1}, strange, 0))
		s.OK(win.Unlock(s.Ctx, strange))
	}
	s.OK(win.Close())
}))

func TestStoppedStranger(t *testing.T) {
	busy.Acquire(t)
	job := jobtest.Start(t, strangers, besideStranger)
	for rank := range strangers {
		job.Await(rank, "ready")
	}
	job.Release(strange)
	job.AwaitStop(strange)
	for rank := range strangers {
		if rank != strange {
			job.Release(rank)
		}
	}
	job.Await(caller, "stopped")
	job.Release(caller)
	job.Await(caller, "called")
	job.Continue(strange)
	job.Release(caller)
	for rank, err := range job.Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}
