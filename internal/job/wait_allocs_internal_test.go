//go:build !race

package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// The race detector allocates.

// The guard allocates nothing for a wait that sleeps, nor for one that is restarted: its state is reused with the Sleeper.
func TestSleepAllocatesNothing(t *testing.T) {
	w, ctx := quiet(t, sleeping(forever))[0], context.Background()
	before, _ := w.engine.Sleeps()
	const runs = 100
	sleep := func(wait *Waiter) (err error) {
		for !wait.AboutToSleep() && err == nil {
			err = wait.Pause(ctx)
		}
		// The sleep ends at once.
		w.engine.Wake()
		for wait.AboutToSleep() && err == nil {
			err = wait.Pause(ctx)
		}
		return err
	}
	require.Zero(t, testing.AllocsPerRun(runs, func() {
		wait := w.NewWaiter()
		defer wait.Finish()
		wait.For(1)
		if sleep(&wait) != nil {
			return
		}
		wait.Restart()
		_ = sleep(&wait)
	}))
	after, _ := w.engine.Sleeps()
	require.GreaterOrEqual(t, after-before, uint64(2*runs))
}
