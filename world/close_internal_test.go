package world

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// ended is a context that has ended.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// A report whose questions are not answered holds up no Close: that does not wait for it before it leaves, and ends it with the World.
func TestReportHoldsUpNoClose(t *testing.T) {
	s, err := newSettings(append(apart(), WithLogger(nil)))
	require.NoError(t, err)
	worlds, err := localWorlds(t.Context(), 2, s)
	require.NoError(t, err)
	for _, w := range worlds {
		w.stopDriver()
	}
	w := worlds[0]
	wait := w.NewWaiter()
	wait.call = &waitingCall{name: "world.Barrier"}
	wait.report([]int{1})
	require.NoError(t, w.aside.waitIn(ended()))
	states := make(chan []string, 1)
	w.reports.start(func(ctx context.Context) {
		states <- w.statesOf(&within{ctx, w, w.Now() + 2*await.Limit, true}, []int{1})
	})
	await.Parked(t, "world.(*World).statesOf", 1)
	departed := make(chan error, 1)
	go func() { departed <- w.depart() }()
	require.NoError(t, await.Receive(t, "the World to end", departed))
	require.Equal(t, []string{"had not answered when this rank closed its World"}, <-states)
	require.NoError(t, worlds[1].depart())
}
