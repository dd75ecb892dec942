package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A queue pair whose queue overflows is found in error by who polls, though all that it
// has outstanding was to be told of by that queue.
func TestOverflowIsHeard(t *testing.T) {
	s := newBareOf(t, 2)
	requests := make([]verbs.SendRequest, 4)
	for i := range requests {
		requests[i] = verbs.SendRequest{ID: uint64(i), Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled}
	}
	_, err := s.pair.PostSend(requests)
	require.NoError(t, err)
	s.visit()
	s.hear(s.script, message(frame{kind: kindAcknowledge, acked: 4}, ""))
	require.ErrorIs(t, s.pair.Err(), errOverflow)
	var statuses []verbs.Status
	for _, c := range s.completions() {
		require.Equal(t, s.pair.Number(), c.QueuePair)
		statuses = append(statuses, c.Status)
	}
	require.Equal(t, []verbs.Status{verbs.StatusSuccess, verbs.StatusSuccess, verbs.StatusFlushed}, statuses)
}
