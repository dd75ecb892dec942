package completion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A queue needs memory only for the completions that it holds, whatever its capacity. It forgets the final completion
// of a queue pair when the pair is detached.
func TestMemory(t *testing.T) {
	q, err := New(MaxCapacity)
	require.NoError(t, err)
	var into [1]verbs.Completion
	for range 3 * firstEntries {
		require.True(t, q.Push(&verbs.Completion{}))
		require.Equal(t, 1, q.Take(into[:]))
	}
	require.Len(t, q.entries, firstEntries, "holding one at a time")
	for range 16 * firstEntries {
		require.True(t, q.Push(&verbs.Completion{}))
	}
	require.Len(t, q.entries, 16*firstEntries)

	q, err = New(1)
	require.NoError(t, err)
	require.Nil(t, q.silent)
	require.True(t, Attach(q, q))
	for range 3 {
		q.Push(&verbs.Completion{QueuePair: 7})
	}
	require.Contains(t, q.silent, uint32(7))
	Detach(q, q, 7)
	require.NotContains(t, q.silent, uint32(7), "a number that another may have")
}
