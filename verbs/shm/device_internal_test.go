package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// departed returns the number of rings of closed queue pairs that the device keeps.
func (s *side) departed() int {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	s.device.reclaim()
	return len(s.device.departed)
}

// gone is the address of a device that has been closed.
func gone(t *testing.T, open func() *Device) string {
	device := open()
	require.NoError(t, device.Close())
	return device.Address()
}

// TestRingsOfFailedDials connects to nobody, closing the queue pair before and after it
// has failed.
func TestRingsOfFailedDials(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, nobody := newSide(t, open()), gone(t, open)
			for i := range 20 {
				near.connect(nobody, verbs.QueuePairConfig{})
				if i%2 == 0 {
					near.await(func() bool { return near.pair.State() == verbs.StateError }, "error")
				}
				require.NoError(t, near.pair.Close())
			}
			near.await(func() bool { return near.departed() == 0 }, "end of the rings")
		})
	}
}

// TestRingsOfGonePeers has peers go that have polled no request, or not closed their end.
func TestRingsOfGonePeers(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			near, far := connected(t, form.open(t), verbs.QueuePairConfig{})
			first := near.pair
			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			far.await(func() bool {
				far.device.mu.Lock()
				defer far.device.mu.Unlock()
				return len(far.device.requests) == 1
			}, "request")
			require.NoError(t, first.Close())
			require.NoError(t, near.pair.Close())
			require.Equal(t, 2, near.departed(), "the peer may touch both rings")
			require.NoError(t, far.device.Close())
			near.await(func() bool { return near.departed() == 0 }, "end of the rings")
		})
	}
}

// TestReclaimLooksAtFew has a peer keep more rings than one reclaim looks at, and finds
// all in the end.
func TestReclaimLooksAtFew(t *testing.T) {
	open := openFabric(t)
	near, far := newSide(t, open()), newSide(t, open())
	const pairs = 3*reclaimed + 1
	for range pairs {
		near.connect(far.device.Address(), verbs.QueuePairConfig{})
		require.NoError(t, near.pair.Close())
	}
	require.Equal(t, pairs, near.departed())
	for range pairs {
		far.request().Reject("too many")
	}
	require.Equal(t, pairs-reclaimed, near.departed())
	for range 3 {
		near.departed()
	}
	require.Zero(t, near.departed())
}

// TestResponseTwice responds to connection requests again.
func TestResponseTwice(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := newSide(t, open()), newSide(t, open())
			config := verbs.QueuePairConfig{SendQueue: far.queue, ReceiveQueue: far.queue}

			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			request := far.request()
			_, err := request.Accept(verbs.QueuePairConfig{})
			require.Error(t, err, "without queues")
			pair, err := request.Accept(config)
			require.NoError(t, err, "a request without a response")
			_, err = request.Accept(config)
			require.ErrorIs(t, err, verbs.ErrClosed)
			request.Reject("too late")
			near.await(func() bool { return near.pair.State() == verbs.StateReady }, "ready")
			require.Equal(t, verbs.StateReady, pair.State())

			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			request = far.request()
			request.Reject("no room")
			_, err = request.Accept(config)
			require.ErrorIs(t, err, verbs.ErrClosed)
			near.await(func() bool { return near.pair.State() == verbs.StateError }, "error")
			require.ErrorContains(t, near.pair.Err(), "no room")
		})
	}
}

// TestResponseAfterClose responds when the device has been closed: the peer may have taken
// the memory back by then in which the response would be.
func TestResponseAfterClose(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := newSide(t, open()), newSide(t, open())
			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			first := far.request()
			in := near.pair.in
			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			second := far.request()
			require.NoError(t, far.device.Close())
			first.Reject("too late")
			_, err := second.Accept(verbs.QueuePairConfig{SendQueue: far.queue, ReceiveQueue: far.queue})
			require.ErrorIs(t, err, verbs.ErrClosed)
			require.Equal(t, responseNone, in.response.Load())
			require.Equal(t, responseNone, near.pair.in.response.Load())
		})
	}
}

// TestTooManyRequests connects to a device that has not polled any for long: this
// connection is rejected, and none other suffers.
func TestTooManyRequests(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			near, far := connected(t, form.open(t), verbs.QueuePairConfig{})
			ready := near.pair
			far.device.mu.Lock()
			far.device.requests = make([]verbs.ConnectionRequest, maxConnectionRequests)
			far.device.mu.Unlock()
			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			near.await(func() bool { return near.pair.State() == verbs.StateError }, "error")
			require.ErrorIs(t, near.pair.Err(), verbs.ErrRejected)
			require.ErrorContains(t, near.pair.Err(), "too many connections wait")
			far.device.mu.Lock()
			far.device.requests = nil
			far.device.mu.Unlock()
			require.Equal(t, verbs.StateReady, ready.State())
			require.NoError(t, ready.peer.gone())
		})
	}
}

// TestWithdrawn closes queue pairs whose requests are accepted before and after it, with
// nobody polling meanwhile: no ring is kept for a side that never came.
func TestWithdrawn(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := newSide(t, open()), newSide(t, open())
			config := verbs.QueuePairConfig{SendQueue: far.queue, ReceiveQueue: far.queue}

			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			request := far.request()
			pair, err := request.Accept(config)
			require.NoError(t, err)
			require.NoError(t, near.pair.Close())
			require.NoError(t, pair.Close())
			require.Zero(t, near.departed())
			require.Zero(t, far.departed())

			near.connect(far.device.Address(), verbs.QueuePairConfig{})
			request = far.request()
			require.NoError(t, near.pair.Close())
			_, err = request.Accept(config)
			require.ErrorIs(t, err, verbs.ErrPeerGone)
			_, err = request.Accept(config)
			require.ErrorIs(t, err, verbs.ErrClosed)
			require.Zero(t, near.departed())
			require.Zero(t, far.departed())
		})
	}
}

// TestMapNeedsRight maps regions that grant their peers nothing, and something.
func TestMapNeedsRight(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := newSide(t, open()), newSide(t, open())
			neighbor, err := near.device.Neighbor(far.device.Address())
			require.NoError(t, err)
			for _, access := range []verbs.Access{0, verbs.LocalWrite} {
				region, err := far.device.RegisterMemory(far.memory, access)
				require.NoError(t, err)
				_, err = neighbor.Map(region.Remote())
				require.ErrorIs(t, err, verbs.StatusRemoteAccess)
			}
			for _, access := range []verbs.Access{verbs.RemoteWrite, verbs.RemoteRead, verbs.RemoteAtomic} {
				region, err := far.device.RegisterMemory(far.memory, access)
				require.NoError(t, err)
				mapped, err := neighbor.Map(region.Remote())
				require.NoError(t, err)
				require.Len(t, mapped, len(far.memory))
			}
		})
	}
}
