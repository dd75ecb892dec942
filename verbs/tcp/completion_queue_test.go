package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A queue takes memory for what it holds, whatever its capacity, and keeps the order
// while it grows, wherever in its ring it begins.
func TestQueueGrows(t *testing.T) {
	for _, polled := range []int{0, 1, firstEntries - 1} {
		created, err := bareDevice().CreateCompletionQueue(maxCapacity)
		require.NoError(t, err)
		q := created.(*completionQueue)
		into := make([]verbs.Completion, 16*firstEntries)
		for range polled {
			require.True(t, q.push(new(verbs.Completion)))
			require.Equal(t, 1, q.Poll(into))
		}
		require.Len(t, q.entries, firstEntries, "holding one at a time")
		for id := range len(into) {
			require.True(t, q.push(&verbs.Completion{ID: uint64(id)}))
		}
		require.Len(t, q.entries, len(into))
		require.Equal(t, len(into), q.Poll(into))
		for id := range into {
			require.EqualValues(t, id, into[id].ID)
		}
		require.Zero(t, q.Poll(into))
	}
}

// A queue that has no room lets each queue pair say that it has failed, once, behind what
// came in time.
func TestLastWords(t *testing.T) {
	created, err := bareDevice().CreateCompletionQueue(3)
	require.NoError(t, err)
	q := created.(*completionQueue)
	type word struct {
		pair   uint32
		id     uint64
		status verbs.Status
	}
	for i, c := range []struct {
		word
		room bool
	}{
		{word{1, 10, verbs.StatusSuccess}, true},
		{word{2, 20, verbs.StatusSuccess}, true},
		{word{1, 11, verbs.StatusSuccess}, true},
		{word{1, 12, verbs.StatusSuccess}, false},
		{word{1, 13, verbs.StatusFlushed}, false},
		{word{2, 21, verbs.StatusRemoteAccess}, false},
		{word{2, 22, verbs.StatusFlushed}, false},
	} {
		require.Equal(t, c.room, q.push(&verbs.Completion{QueuePair: c.pair, ID: c.id, Status: c.status}), "push %d", i)
	}
	poll := func() (got []word) {
		into := make([]verbs.Completion, 10)
		for _, c := range into[:q.Poll(into)] {
			got = append(got, word{c.QueuePair, c.ID, c.Status})
		}
		return got
	}
	require.Equal(t, []word{
		{1, 10, verbs.StatusSuccess}, {2, 20, verbs.StatusSuccess}, {1, 11, verbs.StatusSuccess},
		{1, 12, verbs.StatusFlushed}, {2, 21, verbs.StatusRemoteAccess},
	}, poll())
	require.False(t, q.push(&verbs.Completion{QueuePair: 3, ID: 30}), "there is no room again")
	require.Equal(t, []word{{3, 30, verbs.StatusFlushed}}, poll())
	q.drop(3)
	require.NotContains(t, q.silent, uint32(3), "a number that another may have")
}

// A queue pair whose queue overflows is found in error by who polls, though all that it
// has outstanding was to be told of by that queue.
func TestOverflowIsHeard(t *testing.T) {
	s := newBare(t)
	s.queue.capacity = 2
	requests := make([]verbs.SendRequest, 4)
	for i := range requests {
		requests[i] = verbs.SendRequest{ID: uint64(i), Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled}
	}
	_, err := s.pair.PostSend(requests)
	require.NoError(t, err)
	s.visit()
	f := frame{kind: kindAcknowledge, acked: 4}
	header := make([]byte, headerSize)
	f.encode(header)
	s.hear(s.script, header)
	require.ErrorIs(t, s.pair.Err(), errOverflow)
	var statuses []verbs.Status
	for _, c := range s.completions() {
		require.Equal(t, s.pair.Number(), c.QueuePair)
		statuses = append(statuses, c.Status)
	}
	require.Equal(t, []verbs.Status{verbs.StatusSuccess, verbs.StatusSuccess, verbs.StatusFlushed}, statuses)
}
