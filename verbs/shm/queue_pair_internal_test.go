package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// TestPeerLeavesWithMessagesUnread has the peer's device close when it has sent a
// message for which there is no receive: what is outstanding here ends all the same.
func TestPeerLeavesWithMessagesUnread(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			near, far := connected(t, form.open(t), verbs.QueuePairConfig{})
			near.send(1, 8)
			far.send(2, 8)
			require.NoError(t, far.device.Close())
			require.Equal(t, []ended{{1, verbs.StatusFlushed}}, endings(near.completions(1)))
			require.Equal(t, verbs.StateError, near.pair.State())
			require.ErrorIs(t, near.pair.Err(), verbs.ErrPeerGone)
		})
	}
}

// TestPeerLeavesWithMessagesAwaited has receives for what the peer sent before it left.
func TestPeerLeavesWithMessagesAwaited(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			near, far := connected(t, form.open(t), verbs.QueuePairConfig{})
			near.send(1, 8)
			far.send(2, 8)
			far.send(3, 8)
			far.receive(8, 4)
			require.NoError(t, far.pair.Close())
			near.receive(8, 5, 6, 7)
			require.ElementsMatch(t, []ended{{1, verbs.StatusSuccess}, {5, verbs.StatusSuccess}, {6, verbs.StatusSuccess}, {7, verbs.StatusFlushed}}, endings(near.completions(4)))
		})
	}
}

// TestBlame has a peer take one message and refuse the next between two looks of the
// sender: the one that was delivered is not the one that is blamed.
func TestBlame(t *testing.T) {
	near, far := connected(t, openFabric(t), verbs.QueuePairConfig{})
	far.receive(8, 10, 11)
	near.send(0, 8)
	near.send(1, 16)
	near.send(2, 8)

	near.pair.mu.Lock()
	near.pair.takeFrames()
	near.pair.advance()
	require.Equal(t, []ended{{10, verbs.StatusSuccess}, {11, verbs.StatusLocalLength}}, endings(far.completions(2)))
	near.pair.notice()
	near.pair.flush()
	near.pair.mu.Unlock()

	require.Equal(t, []ended{{0, verbs.StatusSuccess}, {1, verbs.StatusRemoteInvalid}, {2, verbs.StatusFlushed}}, endings(near.completions(3)))
}

// TestNonsenseTail has a peer claim to have taken what was never sent, or to have put
// back what it took: every post and poll returns, and the connection ends.
func TestNonsenseTail(t *testing.T) {
	for _, test := range []struct {
		name string
		tail uint64
	}{
		{"beyond the head", 1 << 40},
		{"one beyond the head", 2*(frameHeader+8) + 1},
		{"before what was taken", 0},
		{"a ring before the head", 1<<64 - ringBytes},
	} {
		for _, opcode := range []verbs.Opcode{verbs.OpSend, verbs.OpRDMAWriteImmediate} {
			t.Run(test.name, func(t *testing.T) {
				near, far := connected(t, openFabric(t), verbs.QueuePairConfig{})
				far.receive(8, 10)
				near.send(0, 8)
				far.completions(1)
				near.completions(1)
				near.pair.out.tail.Store(test.tail)
				remote := far.region.Remote()
				_, err := near.pair.PostSend([]verbs.SendRequest{{ID: 1, Opcode: opcode, Segments: near.segment(0, 8), RemoteAddress: remote.Address, RKey: remote.RKey}})
				require.NoError(t, err)
				require.Equal(t, []ended{{1, verbs.StatusFlushed}}, endings(near.completions(1)))
				require.Equal(t, verbs.StateError, near.pair.State())
				require.ErrorIs(t, near.pair.Err(), verbs.StatusRemoteInvalid)
			})
		}
	}
}

// TestPollPassesOver polls while the queue pair is held, as it is during a large copy:
// that does not wait, and who goes to sleep for it is woken.
func TestPollPassesOver(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			near, far := connected(t, form.open(t), verbs.QueuePairConfig{})
			near.receive(8, 1)
			far.send(2, 8)
			near.pair.mu.Lock()
			channel := near.device.Channel()
			ticket := channel.Prepare()
			require.Zero(t, near.queue.Poll(nil))
			require.Equal(t, 1, near.pair.receiveCount)
			near.pair.unlock()
			channel.Sleep(ticket, -1)
			channel.Finish()
			require.Equal(t, []ended{{1, verbs.StatusSuccess}}, endings(near.completions(1)))
			require.False(t, near.pair.missed.Load())
		})
	}
}
