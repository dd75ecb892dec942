package job

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/verbs"
)

// letterOf sends a rank a letter as it is.
func letterOf(t *testing.T, w *World, rank int, letter []byte) {
	out, err := w.post.writer(rank)
	require.NoError(t, err)
	place, err := out.Place(len(letter))
	require.NoError(t, err)
	copy(place, letter)
	out.Send(len(letter))
	w.Ring(rank)
}

// firstTicket is the first letter of a message, of a piece.
func firstTicket(h header, ticket, address, length, rkey uint64) []byte {
	letter := make([]byte, firstTicketBytes)
	h.encode(letter)
	for i, word := range []uint64{ticket, address, length, rkey} {
		binary.LittleEndian.PutUint64(letter[headerBytes+8*i:], word)
	}
	return letter
}

// A rank that says of what it stages what no rank does has failed, and nothing is written but what is asked for.
func TestStagingOfARankThatKeepsNoRules(t *testing.T) {
	const length = stagedFrom
	h := header{signature{call: callBroadcast, number: 1, element: 8, part: length}, length | stagedMark, 0}
	for _, c := range []struct {
		name   string
		letter func(w *World) []byte
		says   string
	}{
		{"a piece that there is not", func(w *World) []byte { return ticketOf(w, h, stagedPieces<<32|8) }, "of piece 32; allowed are 32768 of one below 32"},
		{"a piece that is too long", func(w *World) []byte { return ticketOf(w, h, pieceBytes+1) }, "32769 bytes of piece 0"},
		{"a part of an element", func(w *World) []byte { return ticketOf(w, h, 12) }, "12 bytes of elements of 8"},
		{"a piece of no bytes", func(w *World) []byte { return ticketOf(w, h, 0) }, "a piece of no bytes, while 32768 bytes of the message have not come"},
		{"half a ticket", func(w *World) []byte { return ticketOf(w, h, 8)[:firstTicketBytes-4] }, "a first ticket of 28 bytes"},
		{"memory that is nowhere", func(*World) []byte { return firstTicket(h, 8, 1<<40, 1<<21, 7) }, "remote access error"},
		{"memory that is short", func(w *World) []byte {
			places := w.post.slab.Remote()
			place := w.Place(1, &places)
			return firstTicket(h, 8, place.Address, place.Length, uint64(place.RKey))
		}, "a staging of "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var failed error
			kernel, err := reduce.Lookup(reduce.Int64, reduce.Sum)
			require.NoError(t, err)
			data, check := guarded(length)
			found := make(chan struct{})
			_ = Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == 0 {
					// So that there is a slab.
					_, err := w.post.writer(1)
					require.NoError(t, err)
					letterOf(t, w, 1, c.letter(w))
					<-found
					return nil
				}
				defer close(found)
				none, in := new(parcel), &parcel{rank: 0, header: h, data: data, active: true}
				in.addition = addition{kernel: kernel, size: 8}
				failed = w.post.exchange(ctx, "Broadcast", none, in)
				return nil
			})
			var peer *PeerError
			require.ErrorAs(t, failed, &peer)
			require.Equal(t, 0, peer.Rank)
			require.ErrorContains(t, failed, c.says)
			check(t)
			for _, b := range data {
				require.Equal(t, byte(0xa5), b)
			}
		})
	}
}

// ticketOf is a first ticket that tells of the staging of this rank.
func ticketOf(w *World, h header, ticket uint64) []byte {
	if err := w.post.openStaging(); err != nil {
		panic(err)
	}
	places := w.post.staging.region.Remote()
	place := w.Place(1, &places)
	return firstTicket(h, ticket, place.Address, place.Length, uint64(place.RKey))
}

// still is a neighbor that nothing wakes, and which has no memory to map.
type still struct{ verbs.Neighbor }

func (still) Wake() {}

func (still) Map(verbs.RemoteRegion) ([]byte, error) { return nil, verbs.StatusRemoteAccess }

// Any letters come in the place of tickets: they are a message, or an error; nothing beside its data is written.
func FuzzTickets(f *testing.F) {
	const length = stagedFrom
	h := header{signature{call: callBroadcast, number: 1, element: 8, part: length}, length | stagedMark, 0}
	f.Add(firstTicket(h, pieceBytes, 0, 0, 0), uint64(1)<<32|8, []byte("ticket"))
	f.Add(firstTicket(h, 0, 0, 0, 0), uint64(7)<<32, []byte{})
	f.Add(firstTicket(h, 31<<32|pieceBytes, 8, 0, 0), uint64(1)<<63, []byte("12345678"))
	f.Add(firstTicket(h, 32<<32|pieceBytes, 0, 0, 0)[:60], uint64(1)<<63, []byte("12345678"))
	f.Fuzz(func(t *testing.T, first []byte, second uint64, third []byte) {
		data, check := guarded(length)
		staged, checkStaged := guarded(stagingBytes(stagedPieces))
		w := &World{endpoint: &endpoint{linkLetter: 1024}, job: &job{}, size: 2, neighbors: make([]atomic.Pointer[verbs.Neighbor], 2)}
		var neighbor verbs.Neighbor = still{}
		w.neighbors[1].Store(&neighbor)
		o := &w.post
		o.open(w)
		memory := make([]byte, o.shape.Bytes())
		out, err := pipe.NewWriter(o.shape, memory)
		require.NoError(t, err)
		in, err := pipe.NewReader(o.shape, memory)
		require.NoError(t, err)
		o.pipes[1] = &pipes{in: in, staged: staged}
		for _, letter := range [][]byte{first, binary.LittleEndian.AppendUint64(nil, second), third} {
			if len(letter) == 0 {
				continue
			}
			place, err := out.Place(min(len(letter), o.shape.MaxMessage))
			require.NoError(t, err)
			out.Send(copy(place, letter))
		}
		p := &parcel{rank: 1, header: h, data: data, active: true}
		require.LessOrEqual(t, allocs.Of(func() { _, err = o.getStaged(p) }), mostAllocated)
		if err != nil {
			var stray *strayError
			var broken *boxError
			require.True(t, errors.As(err, &stray) || errors.As(err, &broken), "%v", err)
		}
		require.LessOrEqual(t, p.done, length)
		check(t)
		checkStaged(t)
	})
}

// Of a piece that says of itself what no rank says the rank is told to which it went, whoever is sent to now.
func TestSpoiltPiece(t *testing.T) {
	err := Run(t.Context(), 3, func(_ context.Context, w *World) error {
		s := &w.post.staging
		if err := w.post.openStaging(); err != nil {
			return err
		}
		for want := range 3 {
			i, err := s.free()
			require.NoError(t, err)
			require.Equal(t, want, i)
			s.use(i, want)
		}
		wordOfPiece(s.region.Memory(), 0).Store(0)
		i, err := s.free()
		require.NoError(t, err)
		require.Equal(t, 3, i, "in turn")
		for i := 3; i < stagedPieces; i++ {
			s.use(i, 1)
		}
		wordOfPiece(s.region.Memory(), 0).Store(1)
		i, err = s.free()
		require.NoError(t, err)
		require.Equal(t, -1, i)
		wordOfPiece(s.region.Memory(), 2).Store(7)
		_, err = s.free()
		var broken *boxError
		require.ErrorAs(t, err, &broken)
		require.Equal(t, 2, broken.rank)
		return nil
	})
	require.NoError(t, err)
}
