package job

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// What a rank leaves in a pipe, or says of one, that no rank does is its failure.
func TestPipesOfARankThatKeepsNoRules(t *testing.T) {
	const line = 64
	h := header{signature{call: callBroadcast, number: 1, element: 8, part: 8}, 8, 0}
	for _, c := range []struct {
		name   string
		finder int
		spoil  func(w *World)
		says   string
	}{
		{"a message of a length that there is not", 1, func(w *World) {
			// Behind what the reader tells, and the first message.
			binary.NativeEndian.PutUint64(w.post.slab.Memory()[2*line:], 1<<60|2)
		}, "pipe: protocol broken: a message of 268435456 bytes; allowed are 1 to 8184"},
		{"a message that is too long for the call", 1, func(w *World) {
			place, err := w.post.pipes[1].out.Place(headerBytes + 9)
			require.NoError(t, err)
			h.encode(place)
			w.post.pipes[1].out.Send(headerBytes + 9)
		}, "1 byte more than the message has"},
		{"a message without a header", 1, func(w *World) {
			_, err := w.post.pipes[1].out.Place(headerBytes - 1)
			require.NoError(t, err)
			w.post.pipes[1].out.Send(headerBytes - 1)
		}, "a message of 47 bytes has no header"},
		{"a message whose data does not begin", 1, func(w *World) {
			place, err := w.post.pipes[1].out.Place(headerBytes)
			require.NoError(t, err)
			h.encode(place)
			w.post.pipes[1].out.Send(headerBytes)
		}, "a piece of no bytes, while 8 bytes of the message have not come"},
		{"a pipe that is nowhere", 2, func(w *World) {
			block, err := w.blockOf(2)
			require.NoError(t, err)
			traysOver(block, w.size)[0].tell(verbs.RemoteRegion{Address: 1 << 40, Length: 1 << 20, RKey: 7}, 0)
		}, "remote access error"},
		{"a pipe that is too short", 2, func(w *World) {
			block, err := w.blockOf(2)
			require.NoError(t, err)
			places := w.post.slab.Remote()
			traysOver(block, w.size)[0].tell(w.Place(2, &places), len(w.post.slab.Memory())-8)
		}, "8 bytes of memory; it takes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			received, spoilt, found := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var err error
			_ = Run(t.Context(), 3, func(ctx context.Context, w *World) error {
				data, none := []int{7}, new(parcel)
				with := func(rank int) *parcel {
					return &parcel{rank: rank, header: h, data: bytesOf(data), active: true}
				}
				switch w.rank {
				case 0:
					// Rank 2 is sent nothing.
					require.NoError(t, w.post.exchange(ctx, "Broadcast", with(1), none))
					<-received
					c.spoil(w)
					close(spoilt)
				case 1:
					require.NoError(t, w.post.exchange(ctx, "Broadcast", none, with(0)))
					close(received)
				}
				<-spoilt
				if w.rank == c.finder {
					err = w.post.exchange(ctx, "Broadcast", none, with(0))
					close(found)
				}
				<-found
				return nil
			})
			var peer *PeerError
			require.ErrorAs(t, err, &peer)
			require.Equal(t, 0, peer.Rank)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// A rank whose process is found to be gone has failed, whoever finds it.
func TestGoneIsAFailure(t *testing.T) {
	found := make(chan struct{})
	var failed error
	_ = Run(t.Context(), 2, func(_ context.Context, w *World) error {
		if w.rank == 1 {
			<-found
			return nil
		}
		defer close(found)
		failed = w.post.failed("Gather", 1, &linkageError{1, fmt.Errorf("process 7: %w", verbs.ErrPeerGone)})
		return nil
	})
	var peer *PeerError
	require.ErrorAs(t, failed, &peer)
	require.Equal(t, 1, peer.Rank)
	require.ErrorIs(t, failed, verbs.ErrPeerGone)
}

// goneNeighbor is a process that has ended since it was met.
type goneNeighbor struct{ verbs.Neighbor }

func (goneNeighbor) Wake() {}

func (goneNeighbor) Map(verbs.RemoteRegion) ([]byte, error) {
	return nil, fmt.Errorf("process 7: %w", verbs.ErrPeerGone)
}

// That holds for a call that maps the rank's block first of all, too.
func TestGoneBeforeItsBlockIsMapped(t *testing.T) {
	found := make(chan struct{})
	var failed error
	_ = Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			<-found
			return nil
		}
		defer close(found)
		var gone verbs.Neighbor = goneNeighbor{}
		w.neighbors[1].Store(&gone)
		failed = w.Barrier(ctx)
		return nil
	})
	var peer *PeerError
	require.ErrorAs(t, failed, &peer)
	require.Equal(t, 1, peer.Rank)
	require.Equal(t, "Barrier", peer.Op)
	require.ErrorIs(t, failed, verbs.ErrPeerGone)
}
