package world

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Push asks whether what was told has been served, once, and as long as there is room for a question.
func TestPushAsks(t *testing.T) {
	worlds := quiet(t)
	var services [2]echo
	for rank, w := range worlds {
		defer w.Serve(7, &services[rank])()
	}
	l, err := worlds[0].Link(1)
	require.NoError(t, err)
	tell := func() { require.NoError(t, l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil)) }
	reached := func(m Mark) {
		for done := false; !done; runtime.Gosched() {
			for _, w := range worlds {
				w.Poll()
			}
			done, err = l.Reached(m)
			require.NoError(t, err)
		}
	}
	none, ok := l.Push()
	require.True(t, ok)
	require.Zero(t, none.asked)
	tell()
	first, ok := l.Push()
	require.True(t, ok)
	require.EqualValues(t, 1, first.asked)
	again, ok := l.Push()
	require.True(t, ok)
	require.Equal(t, first.asked, again.asked)
	reached(first)
	require.EqualValues(t, 1, services[1].told.Load())

	var marks []Mark
	for range mostAsked {
		tell()
		m, ok := l.Push()
		require.True(t, ok)
		marks = append(marks, m)
	}
	tell()
	full, ok := l.Push()
	require.False(t, ok)
	require.Equal(t, marks[mostAsked-1].asked, full.asked)
	for i, m := range marks {
		reached(m)
		require.GreaterOrEqual(t, services[1].told.Load(), int64(i+2))
	}
	last, ok := l.Push()
	require.True(t, ok)
	reached(last)
	require.EqualValues(t, mostAsked+2, services[1].told.Load())
}
