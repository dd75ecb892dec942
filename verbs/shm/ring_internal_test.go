package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/verbs"
)

// receiver is a connected queue pair with receives posted, whose ring a test writes to
// as its peer may.
func receiver(t testing.TB) (*queuePair, verbs.CompletionQueue) {
	t.Helper()
	fabric := NewFabric()
	var devices [2]*Device
	for i := range devices {
		var err error
		devices[i], err = fabric.Open()
		require.NoError(t, err)
		t.Cleanup(func() { _ = devices[i].Close() })
	}
	queue := func(d *Device) verbs.CompletionQueue {
		q, err := d.CreateCompletionQueue(64)
		require.NoError(t, err)
		return q
	}
	far, near := queue(devices[1]), queue(devices[0])
	_, err := devices[1].Connect(devices[0].Address(), nil, verbs.QueuePairConfig{SendQueue: far, ReceiveQueue: far})
	require.NoError(t, err)
	var requests [1]verbs.ConnectionRequest
	require.Equal(t, 1, devices[0].PollConnections(requests[:]))
	pair, err := requests[0].Accept(verbs.QueuePairConfig{SendQueue: near, ReceiveQueue: near})
	require.NoError(t, err)
	memory := make([]byte, 4096)
	region, err := devices[0].RegisterMemory(memory, verbs.LocalWrite)
	require.NoError(t, err)
	receives := make([]verbs.ReceiveRequest, 16)
	for i := range receives {
		receives[i].Segments = []verbs.Segment{{Memory: memory[i*256 : (i+1)*256], LKey: region.LKey()}}
	}
	_, err = pair.PostReceive(receives)
	require.NoError(t, err)
	return pair.(*queuePair), near
}

// mostAllocated is what may be allocated for what a peer has written, by other goroutines of the process too.
const mostAllocated = 64 << 10

// FuzzRing has a peer write anything to the ring of a connection, and say that any
// number of bytes are there.
func FuzzRing(f *testing.F) {
	f.Add(uint64(16), uint64(0), []byte{0, 0, 0, 0, 1, 0, 0, 0})
	f.Add(uint64(40), uint64(ringBytes-8), []byte{9, 0, 0, 0, 3, 0, 0, 0, 7})
	f.Add(uint64(1)<<63, uint64(3), []byte{255, 255, 255, 255, 255})
	f.Add(uint64(ringBytes), uint64(ringBytes), make([]byte, 200))
	f.Fuzz(func(t *testing.T, there, tail uint64, bytes []byte) {
		q, queue := receiver(t)
		q.consumed.Store(tail)
		q.in.write(tail, bytes[:min(len(bytes), ringBytes)])
		q.in.head.Store(tail + there)
		var completions [64]verbs.Completion
		got := 0
		require.LessOrEqual(t, allocs.Of(func() {
			for range 4 {
				n := queue.Poll(completions[:])
				for _, c := range completions[:n] {
					require.LessOrEqual(t, c.Status, verbs.StatusFlushed)
				}
				got += n
			}
		}), mostAllocated)
		require.LessOrEqual(t, got, 16)
		if q.State() == verbs.StateError {
			require.Error(t, q.Err())
		}
	})
}

// What a peer can write wrongly, one by one.
func TestMalformedFrames(t *testing.T) {
	for _, test := range []struct {
		name  string
		frame frame
		there uint64
	}{
		{"longer than what is there", frame{length: 100, flags: frameLast}, frameHeader + 50},
		{"longer than a frame may be", frame{length: maxChunk + 1, flags: frameLast}, ringBytes},
		{"a length that overflows", frame{length: 1<<32 - 1, flags: frameLast}, ringBytes},
		{"unknown flags", frame{length: 8, flags: 1 << 9}, frameHeader + 8},
		{"a part of a message that is not full", frame{length: 8}, frameHeader + 8},
		{"a part of a message without bytes", frame{}, frameHeader},
		{"an announced write with data", frame{length: 8, flags: frameFlags}, frameHeader + 8},
		{"an announced write without immediate data", frame{flags: frameWrite | frameLast}, frameHeader},
		{"less than a header", frame{flags: frameLast}, frameHeader - 1},
		{"more than the ring holds", frame{flags: frameLast}, ringBytes + 1},
		{"more than the receive holds", frame{length: 300, flags: frameLast}, frameHeader + 304},
	} {
		t.Run(test.name, func(t *testing.T) {
			q, queue := receiver(t)
			var header [frameHeader]byte
			test.frame.encode(&header)
			q.in.write(0, header[:])
			q.in.head.Store(test.there)
			var completions [64]verbs.Completion
			n := queue.Poll(completions[:])
			require.Equal(t, verbs.StateError, q.State())
			require.Error(t, q.Err())
			for _, c := range completions[:n] {
				require.NotEqual(t, verbs.StatusSuccess, c.Status)
			}
		})
	}
}

// FuzzResponses has a peer write anything to the words by which it responds to a connection
// and what is sent over it: every call returns, and nothing completes twice.
func FuzzResponses(f *testing.F) {
	f.Add(uint64(0), uint64(24), uint32(0), uint32(0), uint32(responseAccepted))
	f.Add(uint64(1), uint64(1)<<63, uint32(0), uint32(0), uint32(responseAccepted))
	f.Add(uint64(2), uint64(24), uint32(verbs.StatusRemoteInvalid), uint32(leftByConsumer), uint32(responseAccepted))
	f.Add(uint64(1)<<40, uint64(0), uint32(99), uint32(0), uint32(responseRejected))
	f.Add(uint64(3), uint64(48), uint32(0), ^uint32(0), uint32(77))
	f.Fuzz(func(t *testing.T, locator, tail uint64, fault, left, response uint32) {
		open := openFabric(t)
		near, far := newSide(t, open()), newSide(t, open())
		near.connect(far.device.Address(), verbs.QueuePairConfig{})
		// The rings of this connection are 1 and, if the peer had made it, 2.
		theirs, _, err := far.device.newRing()
		require.NoError(t, err)
		near.pair.in.locator.Store(locator)
		near.pair.in.response.Store(response)
		near.pair.in.left.Store(left &^ leftByConsumer)
		theirs.tail.Store(tail)
		theirs.fault.Store(fault)
		theirs.left.Store(left &^ leftByProducer)
		remote := far.region.Remote()
		requests := make([]verbs.SendRequest, 6)
		for i := range requests {
			requests[i] = verbs.SendRequest{ID: uint64(i), Opcode: verbs.Opcode(i % 4), Flags: verbs.Signalled,
				Segments: near.segment(0, 8), RemoteAddress: remote.Address, RKey: remote.RKey}
		}
		_, err = near.pair.PostSend(requests)
		require.NoError(t, err)
		var completions [16]verbs.Completion
		var got []verbs.Completion
		require.LessOrEqual(t, allocs.Of(func() {
			for range 4 {
				n := near.queue.Poll(completions[:])
				got = append(got, completions[:n]...)
			}
		}), mostAllocated)
		for i, c := range got {
			require.Equal(t, uint64(i), c.ID)
			require.LessOrEqual(t, c.Status, verbs.StatusFlushed)
		}
		if near.pair.State() == verbs.StateError {
			require.Error(t, near.pair.Err())
			require.Len(t, got, len(requests))
		}
	})
}

// TestResponseToNothing has a response in the ring of a connection that was not requested yet.
func TestResponseToNothing(t *testing.T) {
	for _, form := range both {
		for _, response := range []uint32{responseAccepted, responseRejected, 77} {
			t.Run(form.name, func(t *testing.T) {
				near := newSide(t, form.open(t)())
				pair, err := near.device.newPair(verbs.QueuePairConfig{SendQueue: near.queue, ReceiveQueue: near.queue})
				require.NoError(t, err)
				pair.in.response.Store(response)
				require.Zero(t, near.queue.Poll(nil))
				require.Equal(t, verbs.StateConnecting, pair.State())
			})
		}
	}
}
