package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// Waits end when the memory of the World is about to be freed: one that is about to sleep, one that sleeps, and one whose every look
// finds something. One that is a step of closing goes on.
func TestEndWaits(t *testing.T) {
	background := context.Background()
	aboutToSleep := func(t *testing.T, w *World) *Waiter {
		wait := w.NewWaiter()
		t.Cleanup(wait.Finish)
		for !wait.prepared {
			require.NoError(t, wait.Pause(background))
		}
		return &wait
	}
	t.Run("about to sleep", func(t *testing.T) {
		w := quiet(t, sleeping(forever))[0]
		wait := aboutToSleep(t, w)
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
			for !wait.slept && wait.Pause(background) == nil {
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
		await.Parked(t, "job.(*Waiter).pause", 1)
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
			wait.looks, wait.relaxed = 0, 0
			require.ErrorIs(t, wait.Pause(background), ErrClosed)
		}
	})
	t.Run("closing", func(t *testing.T) {
		w := quiet(t)[0]
		wait := aboutToSleep(t, w)
		wait.Closing()
		w.endWaits()
		require.NoError(t, wait.Pause(background))
	})
}

// sleepRecorder is a channel whose Sleep returns at once and records its limit.
type sleepRecorder struct {
	verbs.CompletionChannel
	limit time.Duration
}

func (s *sleepRecorder) Sleep(_ uint32, limit time.Duration) { s.limit = limit }

// A wait polls once after it has announced its sleep, for what arrived before. If another goroutine is polling, that poll
// may have passed the arrival already, so the sleep is short.
func TestSleepBesidePoll(t *testing.T) {
	for _, beside := range []bool{false, true} {
		w := quiet(t, sleeping(forever))[0]
		channel := &sleepRecorder{CompletionChannel: w.channel}
		w.channel = channel
		wait := w.NewWaiter()
		wait.slept = true
		for !wait.prepared {
			require.NoError(t, wait.Pause(context.Background()))
		}
		want := forever
		if beside {
			w.post.mu.Lock()
			want = shortSleep
		}
		err := wait.Pause(context.Background())
		if beside {
			w.post.mu.Unlock()
		}
		wait.Finish()
		w.channel = channel.CompletionChannel
		require.NoError(t, err)
		require.Equal(t, want, channel.limit)
	}
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
