package job_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/launchtest"
)

// closeUntil calls CloseContext, whose context ends when a goroutine of the rank is parked in a function.
func closeUntil(s *script, parked string) error {
	ctx, cancel := context.WithCancelCause(s.Ctx)
	go func() { cancel(errors.Join(errEnough, await.UntilParked(s.Ctx, parked, 1))) }()
	return s.World.CloseContext(ctx)
}

var errEnough = errors.New("enough")

// left is a job in which a Close of rank 1 is cut short after the point at which others count on it no more, rank 2 dies, and rank 0
// closes, which serves rank 1 until that has closed, too.
var left = register("Close at a root", func(s *script) {
	switch s.me {
	case 0:
		s.OK(jobtest.Hold("ready"))
		s.Await("rank 2 to have failed", func() bool { return s.World.Err(2) != nil })
		err := closeUntil(s, "root.(*host).finish")
		s.Fails(err, context.Canceled)
		s.Fails(err, errEnough)
		s.Check(err.Error() == "world: Close: root: context canceled: enough: rank 1 has not finalized", "error is %v", err)
		s.OK(jobtest.Hold("cut"))
	case 1:
		err := closeUntil(s, "job.(*World).meetLast")
		s.Fails(err, context.Canceled)
		s.Fails(err, errEnough)
		s.OK(jobtest.Hold("cut"))
	case 2:
		s.OK(jobtest.Hold("ready"))
	}
})

// CloseContext of rank 0 at a root ends with its context, too, and Close goes on where it stopped.
func TestCloseContextAtTheRoot(t *testing.T) {
	t.Parallel()
	job := jobtest.StartWith(t, 3, left, rootJob(t, launchtest.RootAddress(), 3))
	job.Await(1, "cut")
	job.Await(2, "ready")
	job.Kill(2)
	job.Release(0)
	job.Await(0, "cut")
	job.Release(0)
	job.Release(1)
	errs := job.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.ErrorContains(t, errs[2], "killed")
}
