package window_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A rank that has failed because it was short of descriptors itself, or because its context ended,
// does not come back: the calls that need it end with its failure, and are not made again.
func TestFailedForAReasonOfItsOwn(t *testing.T) {
	for _, cause := range []error{verbs.ErrShortage, context.Canceled} {
		for _, device := range []string{"", "tcp"} {
			t.Run(fmt.Sprint(cause, " ", device), func(t *testing.T) {
				givenUp := fmt.Errorf("given up: %w", cause)
				err := world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
					if w.Rank() == 0 {
						return scripted(callFailed)(ctx, w)
					}
					_, err := window.Allocate[int64](ctx, w, 8)
					return errors.Join(err, w.Barrier(ctx), givenUp)
				}, world.WithDevice(device))
				require.EqualError(t, err, "world: rank 1: "+strings.Replace(givenUp.Error(), "verbs: ", "", 1))
			})
		}
	}
}

// callFailed has rank 0 call what needs rank 1, which has failed.
func callFailed(s *script) {
	lost := func(err error) {
		s.Lost(err, 1)
	}
	win := allocate[int64](s, 8)
	s.OK(win.LockAll(s.Ctx))
	request, err := win.RPut([]int64{1}, 1, 0)
	s.OK(err)
	s.OK(s.World.Barrier(s.Ctx))
	for s.World.Err(1) == nil {
		runtime.Gosched()
	}
	if request != (window.Request{}) {
		link, err := job.Of(s.World).Link(1)
		s.OK(err)
		// That the link has ended is heard of later.
		for link.Tell(&job.Message{Kind: job.FirstKind, Service: 1 << 20}, nil) == nil {
			job.Of(s.World).Poll()
		}
		_, err = request.Test()
		lost(err)
	}
	lost(win.UnlockAll(s.Ctx))
	lost(win.Post(s.Ctx, groupOf(s, win, 1)))
	lost(win.Wait(s.Ctx))
	s.OK(win.Close())
}
