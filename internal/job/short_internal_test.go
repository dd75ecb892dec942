package job

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// unconnected is a queue pair that could not be connected.
type unconnected struct {
	verbs.QueuePair
	err error
}

func (unconnected) State() verbs.State { return verbs.StateError }
func (u unconnected) Err() error       { return u.err }

// shorten has a rank begin a link, for which it is too short of something.
func shorten(t *testing.T, w *World, to int) *Link {
	t.Helper()
	return obstruct(t, w, to, verbs.ErrShortage)
}

// obstruct has a rank begin a link whose connection cannot be made.
func obstruct(t *testing.T, w *World, to int, why error) *Link {
	t.Helper()
	l, err := w.Link(to)
	require.NoError(t, err)
	w.Exclude(func() {
		require.NoError(t, l.pair.Close())
		l.pair = unconnected{l.pair, why}
	})
	return l
}

// A rank that is too short of something to connect takes the connection of one that it has
// one link with, whichever of the two is lower.
func TestShortTakesTheOthers(t *testing.T) {
	for rank := range 2 {
		w := quiet(t)[rank]
		l := shorten(t, w, 1-rank)
		other := &caller{hello: hello(laneLink, 1-rank, 0)}
		w.Exclude(func() { w.accept(l.card, other) })
		w.Poll()
		require.True(t, other.accepted, "rank %d", rank)
		require.NoError(t, l.fault())
	}
}

// The lower rank takes the connection that the other has made meanwhile where its own fails at its end, for want of a route for
// example, and not where the other has refused that or gone.
func TestCrossingAfterFailure(t *testing.T) {
	for _, c := range []struct {
		why   error
		taken bool
	}{
		{syscall.ENETUNREACH, true}, {verbs.ErrShortage, true}, {verbs.ErrRejected, false}, {verbs.ErrPeerGone, false},
	} {
		t.Run(c.why.Error(), func(t *testing.T) {
			worlds := quiet(t)
			w := worlds[0]
			l := obstruct(t, w, 1, fmt.Errorf("connecting: %w", c.why))
			_, err := worlds[1].Link(0)
			require.NoError(t, err)
			await.True(t, "the other to have connected", func() bool {
				w.Exclude(func() { cardSource{w, l.card}.Poll(0) })
				return l.crossing != nil
			})
			w.Exclude(func() { w.rise() })
			require.Equal(t, c.taken, l.up)
			require.Equal(t, !c.taken, errors.Is(l.ending, c.why))
		})
	}
}

// The link works though the lower rank never comes to connect.
func TestShortHasALink(t *testing.T) {
	worlds := quiet(t)
	lower := shorten(t, worlds[0], 1)
	wait := worlds[0].NewWaiter()
	defer wait.Finish()
	for rank, w := range worlds {
		defer w.Serve(7, new(echo))()
		l, err := w.Link(1 - rank)
		require.NoError(t, err)
		require.NoError(t, l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 5}, nil))
	}
	for lower.crossing == nil && !lower.up {
		worlds[0].Exclude(func() { cardSource{worlds[0], lower.card}.Poll(0) })
		runtime.Gosched()
	}
	worlds[0].Exclude(func() { worlds[0].rise() })
	require.True(t, lower.up)
	for !wait.AboutToSleep() {
		require.NoError(t, wait.Pause(t.Context()), "it lacks nothing")
	}
	require.NoError(t, worlds[0].Failure(1))
}
