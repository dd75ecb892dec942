package job

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// Waits end when the memory of the World is about to be freed: one that is about to sleep, one that sleeps, and one whose every look
// finds something. One that is a step of closing goes on.
func TestEndWaits(t *testing.T) {
	background := context.Background()
	aboutToSleep := func(t *testing.T, wait Waiter) *Waiter {
		t.Cleanup(wait.Finish)
		for !wait.AboutToSleep() {
			require.NoError(t, wait.Pause(background))
		}
		return &wait
	}
	t.Run("about to sleep", func(t *testing.T) {
		w := quiet(t, sleeping(forever))[0]
		wait := aboutToSleep(t, w.NewWaiter())
		w.endWaits()
		require.ErrorIs(t, wait.Pause(background), ErrClosed)
	})
	t.Run("asleep", func(t *testing.T) {
		w := quiet(t, sleeping(forever))[0]
		ended, slept := make(chan error, 1), make(chan struct{})
		go func() {
			wait := w.NewWaiter()
			defer wait.Finish()
			// The first sleep ends by itself soon.
			for !wait.Slept() && wait.Pause(background) == nil {
			}
			close(slept)
			for {
				if err := wait.Pause(background); err != nil {
					ended <- err
					return
				}
			}
		}()
		await.Closed(t, "the first sleep to end", slept)
		await.Parked(t, "progress.(*Waiter).pause", 1)
		w.endWaits()
		require.ErrorIs(t, await.Receive(t, "the wait to end", ended), ErrClosed)
	})
	t.Run("finds something", func(t *testing.T) {
		worlds := quiet(t)
		w := worlds[0]
		l, err := worlds[1].Link(0)
		require.NoError(t, err)
		ended, end := context.WithCancel(background)
		end()
		for l.delivered(ended) != nil {
			w.Poll()
		}
		wait := w.NewWaiter()
		defer wait.Finish()
		w.endWaits()
		require.NoError(t, l.Tell(&Message{Kind: kindVerdict, X: 1}, []byte("they call different things")))
		l.Post()
		for w.ledger.heard(1) == nil {
			worlds[1].Poll()
			require.ErrorIs(t, wait.Pause(background), ErrClosed)
		}
	})
	t.Run("closing", func(t *testing.T) {
		w := quiet(t)[0]
		wait := aboutToSleep(t, w.NewClosingWaiter())
		w.endWaits()
		require.NoError(t, wait.Pause(background))
	})
}

// A Close that another goroutine is in ends when the body of its rank has failed: nothing is heard of the others any more.
func TestCloseBesideFailedBody(t *testing.T) {
	errGivenUp := errors.New("body gives up")
	closed := make(chan error, 1)
	ended := make(chan struct{})
	var closing error
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.rank == 1 {
			defer close(ended)
			closing = await.Receive(t, "the Close to end", closed)
			return nil
		}
		go func() { closed <- w.Close() }()
		return errors.Join(await.UntilParked(ctx, "job.(*World).leave", 1), errGivenUp)
	}, append(apart(), sleeping(forever))...)
	<-ended
	require.ErrorIs(t, err, errGivenUp)
	require.ErrorIs(t, closing, ErrClosed)
}
