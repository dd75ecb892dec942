package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// queueOf is a queue of that capacity on a device of its own.
func queueOf(t *testing.T, capacity int) *completionQueue {
	t.Helper()
	created, err := openFabric(t)().CreateCompletionQueue(capacity)
	require.NoError(t, err)
	return created.(*completionQueue)
}

// A queue takes memory for what it holds, whatever its capacity, and keeps the order
// while it grows, wherever in its ring it begins.
func TestQueueGrows(t *testing.T) {
	for _, polled := range []int{0, 1, firstEntries - 1} {
		q := queueOf(t, maxCapacity)
		into := make([]verbs.Completion, 16*firstEntries)
		for range polled {
			require.True(t, q.push(verbs.Completion{}))
			require.Equal(t, 1, q.Poll(into))
		}
		require.Len(t, q.entries, firstEntries, "holding one at a time")
		for id := range len(into) {
			require.True(t, q.push(verbs.Completion{ID: uint64(id)}))
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
// came in time, wherever in its ring it begins.
func TestLastWords(t *testing.T) {
	type word struct {
		pair   uint32
		id     uint64
		status verbs.Status
	}
	for polled := range 3 {
		q := queueOf(t, 3)
		poll := func() (got []word) {
			into := make([]verbs.Completion, 10)
			for _, c := range into[:q.Poll(into)] {
				got = append(got, word{c.QueuePair, c.ID, c.Status})
			}
			return got
		}
		for range polled {
			require.True(t, q.push(verbs.Completion{}))
			require.Len(t, poll(), 1)
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
			require.Equal(t, c.room, q.push(verbs.Completion{QueuePair: c.pair, ID: c.id, Status: c.status}), "push %d", i)
		}
		require.Equal(t, []word{
			{1, 10, verbs.StatusSuccess}, {2, 20, verbs.StatusSuccess}, {1, 11, verbs.StatusSuccess},
			{1, 12, verbs.StatusFlushed}, {2, 21, verbs.StatusRemoteAccess},
		}, poll())
		require.False(t, q.push(verbs.Completion{QueuePair: 3, ID: 30}), "there is no room again")
		require.Equal(t, []word{{3, 30, verbs.StatusFlushed}}, poll())
		q.drop(3)
		require.NotContains(t, q.silent, uint32(3), "a number that another may have")
	}
}

// A queue pair whose queue overflows is found in error by who polls, though all that it
// has outstanding was to be told of by that queue.
func TestOverflowIsHeard(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			near, far := connected(t, form.open(t), verbs.QueuePairConfig{})
			near.pair.sendCQ.capacity = 2
			requests := make([]verbs.SendRequest, 5)
			for i := range requests {
				requests[i] = verbs.SendRequest{ID: uint64(i), Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: near.segment(0, 8),
					RemoteAddress: far.region.Remote().Address, RKey: far.region.Remote().RKey}
			}
			_, err := near.pair.PostSend(requests)
			require.NoError(t, err)
			require.ErrorIs(t, near.pair.Err(), errOverflow)
			want := []ended{{0, verbs.StatusSuccess}, {1, verbs.StatusSuccess}, {2, verbs.StatusFlushed}}
			require.Equal(t, want, endings(near.completions(3)))
			require.Zero(t, near.queue.Poll(make([]verbs.Completion, 1)))
		})
	}
}
