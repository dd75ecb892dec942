package world

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// short is a queue pair that could not be connected, because this rank was short of something.
type short struct{ verbs.QueuePair }

func (short) State() verbs.State { return verbs.StateError }
func (short) Err() error         { return verbs.ErrShortage }

// shorten has a rank begin a link, for which it is too short of something.
func shorten(t *testing.T, w *World, to int) *Link {
	t.Helper()
	l, err := w.Link(to)
	require.NoError(t, err)
	w.Exclude(func() {
		require.NoError(t, l.pair.Close())
		l.pair = short{l.pair}
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

// The link works though the lower rank never comes to connect.
func TestShortHasALink(t *testing.T) {
	worlds := quiet(t)
	lower := shorten(t, worlds[0], 1)
	for rank, w := range worlds {
		defer w.Serve(7, new(echo))()
		l, err := w.Link(1 - rank)
		require.NoError(t, err)
		require.NoError(t, l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 5}, nil))
	}
	for lower.crossing == nil && !lower.up {
		worlds[0].Exclude(func() { worlds[0].pollCard(lower.card) })
		runtime.Gosched()
	}
	worlds[0].Exclude(func() { worlds[0].rise() })
	require.True(t, lower.up)
	require.Nil(t, worlds[0].shortage.Load())
	require.NoError(t, worlds[0].Failure(1))
}
