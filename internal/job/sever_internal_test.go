package job

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// severed is a queue pair of which only that it is severed counts.
type severed struct {
	verbs.QueuePair
	severed bool
}

func (l *severed) Sever() { l.severed = true }

// What is closed is forgotten, what is open is severed with its rank, and what comes later
// is refused.
func TestLines(t *testing.T) {
	var l lines
	closed, open, other, late := new(severed), new(severed), new(severed), new(severed)
	require.NoError(t, l.add(1, closed))
	require.NoError(t, l.add(1, open))
	require.NoError(t, l.add(2, other))
	l.remove(1, closed)
	l.sever(1)
	require.Equal(t, []bool{false, true, false}, []bool{closed.severed, open.severed, other.severed})
	require.ErrorIs(t, l.add(1, late), verbs.ErrPeerGone)
	l.remove(1, late)
	l.remove(2, other)
	require.Empty(t, l.open)
}

// A rank that is severed before there was any line may have its connection given back.
func TestLinesWithout(t *testing.T) {
	var l lines
	l.sever(1)
	require.ErrorIs(t, l.add(1, new(severed)), verbs.ErrPeerGone)
	l.remove(1, new(severed))
	require.Empty(t, l.open)
}
