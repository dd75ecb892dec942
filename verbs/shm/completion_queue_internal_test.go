package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A poll finds the error of a queue pair whose queue overflows, although all its outstanding requests complete into
// that queue.
func TestOverflowIsFound(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := newSide(t, open()), newSide(t, open())
			var err error
			near.queue, err = near.device.CreateCompletionQueue(2)
			require.NoError(t, err)
			near.join(far, verbs.QueuePairConfig{})
			requests := make([]verbs.SendRequest, 5)
			for i := range requests {
				requests[i] = verbs.SendRequest{ID: uint64(i), Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: near.segment(0, 8),
					RemoteAddress: far.region.Remote().Address, RKey: far.region.Remote().RKey}
			}
			_, err = near.pair.PostSend(requests)
			require.NoError(t, err)
			require.ErrorIs(t, near.pair.Err(), errOverflow)
			want := []ended{{0, verbs.StatusSuccess}, {1, verbs.StatusSuccess}, {2, verbs.StatusFlushed}}
			require.Equal(t, want, endings(near.completions(3)))
			require.Zero(t, near.queue.Poll(make([]verbs.Completion, 1)))
			// That is no orderly end.
			far.await(func() bool { far.queue.Poll(nil); return far.pair.State() == verbs.StateError }, "the end of the connection")
			require.ErrorIs(t, far.pair.Err(), verbs.ErrPeerGone)
			require.NotErrorIs(t, far.pair.Err(), verbs.ErrDisconnected)
		})
	}
}
