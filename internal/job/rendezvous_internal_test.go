package job

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

// long is a message of so many bytes from one rank to another by rendezvous.
func long(w *World, to int, data []byte) *parcel {
	h := header{signature{call: callBroadcast, number: 1, element: 8, part: uint64(len(data))}, uint64(len(data)) | rendezvousMark, 0}
	return &parcel{rank: to, header: h, data: data, active: true}
}

// The landing is the library's memory: no look-up for a buffer of the program finds it.
func TestLandingIsNotLookedUp(t *testing.T) {
	w := quiet(t, knowingNone()...)[0]
	require.NoError(t, w.post.openLanding())
	require.Zero(t, w.cards[networkCard].memory.Key(w.post.landing.Memory()))
}

// What a rank that was given up on writes late, or goes on to write, changes no memory of the program.
func TestLateWritesChangeNothing(t *testing.T) {
	worlds := quiet(t)
	from, to := worlds[0], worlds[1]
	sent := bytes.Repeat([]byte{7}, 3*landingBytes)
	data, check := guarded(len(sent))
	out, in := long(from, 1, sent), long(to, 0, data)
	step := func(give bool) {
		_, err := from.post.write(t.Context(), out)
		require.NoError(t, err)
		from.Poll()
		to.Poll()
		if give {
			_, err = to.post.land(in)
			require.NoError(t, err)
		}
	}
	for in.done == 0 {
		step(true)
	}
	require.Less(t, in.done, len(data))
	before := bytes.Clone(data)
	took, put := in.done, out.put
	for range 1000 {
		step(false)
	}
	require.Greater(t, out.put, took, "more was written")
	require.GreaterOrEqual(t, out.put, put)
	require.Equal(t, before, data)
	check(t)
	// Called again both go on.
	for !in.finished() || !out.finished() {
		step(true)
	}
	require.Equal(t, sent, data)
	check(t)
}

// sendAll has from send all of out to a rank that does not land it. land has that rank look once for what has come.
func sendAll(t *testing.T, from, to *World, out, in *parcel) (land func()) {
	land = func() {
		to.Poll()
		_, err := to.post.land(in)
		require.NoError(t, err)
	}
	for !out.sent() {
		from.Poll()
		_, err := from.post.write(t.Context(), out)
		require.NoError(t, err)
		if !out.begun {
			land()
		}
	}
	return land
}

// A call that ends by an error has what it sends read no more, whatever its caller stores there then.
func TestGivenUpIsTheCallers(t *testing.T) {
	worlds := quiet(t)
	from, to := worlds[0], worlds[1]
	sent := bytes.Repeat([]byte{7}, landingBytes)
	want := bytes.Clone(sent)
	data, check := guarded(len(sent))
	out, in := long(from, 1, sent), long(to, 0, data)
	land := sendAll(t, from, to, out, in)
	require.False(t, out.finished())
	given := make(chan error)
	go func() { given <- from.post.giveUp(out, ErrMismatch) }()
	for waiting := true; waiting; {
		select {
		case err := <-given:
			require.ErrorIs(t, err, ErrMismatch)
			waiting = false
		default:
			land()
		}
	}
	clear(sent)
	for !in.finished() {
		from.Poll()
		land()
	}
	require.Equal(t, want, data)
	check(t)
}

// Ranks may tell anything of landings and of what they have written: it is within what is allowed, or an error.
func FuzzRendezvous(f *testing.F) {
	f.Add(uint8(0), uint64(landingBytes), uint64(1), uint64(2), 0)
	f.Add(uint8(1), uint64(100), uint64(200), uint64(200), headerBytes)
	f.Add(uint8(1), uint64(landingBytes), uint64(landingBytes+1), uint64(1)<<63, headerBytes)
	f.Add(uint8(2), uint64(50), uint64(51), uint64(49), 0)
	f.Fuzz(func(t *testing.T, kind uint8, first, second, third uint64, payload int) {
		const expected, put = landingBytes + 1000, 100
		w := &World{endpoint: &endpoint{linkLetter: 1024}, job: &job{}, size: 2}
		o := &w.post
		o.open(w)
		c := &o.box(1).crossing
		c.expected, c.put = expected, put
		from := &Link{world: w, rank: 1}
		header := make([]byte, min(max(payload, 0), 100))
		for _, x := range []uint64{first, second, third} {
			var err error
			require.LessOrEqual(t, allocs.Of(func() {
				switch kind % 3 {
				case 0:
					err = o.ready(from, &Message{X: second, Y: x, Z: third})
				case 1:
					err = o.filled(from, &Message{X: x}, header)
					header = nil
				case 2:
					err = o.landed(from, x)
				}
			}), mostAllocated)
			if err != nil {
				require.ErrorIs(t, err, ErrMessage)
				break
			}
			require.LessOrEqual(t, c.filled, uint64(landingBytes))
			require.LessOrEqual(t, c.taken, uint64(put))
			require.True(t, !c.ready || c.place.Length == landingBytes)
			require.True(t, c.filled == 0 || c.headed)
		}
	})
}

// A rank that writes a message by rendezvous of which this one does not know, or tells of another, has failed.
func TestRendezvousOfARankThatKeepsNoRules(t *testing.T) {
	for _, c := range []struct {
		name string
		tell Message
		head bool
		says string
	}{
		{"more than the message has", Message{Kind: kindFilled, X: 3*landingBytes + 1}, true, "allowed are 1048576"},
		{"nothing", Message{Kind: kindFilled}, true, "0 bytes of a message after 0"},
		{"no header", Message{Kind: kindFilled, X: 16}, false, "a header of 0 bytes"},
		{"more taken than sent", Message{Kind: kindLanded, X: 1}, false, "1 byte of a message taken, of 0"},
		{"a short landing", Message{Kind: kindReady, Y: 8}, false, "a landing of 8 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, check := guarded(2 * landingBytes)
			var failed error
			found := make(chan struct{})
			_ = Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == 0 {
					l, err := w.Link(1)
					require.NoError(t, err)
					for !w.asked(1) {
						w.Poll()
					}
					var head []byte
					if c.head {
						head = make([]byte, headerBytes)
					}
					require.NoError(t, l.Tell(&c.tell, head))
					l.Post()
					<-found
					return nil
				}
				defer close(found)
				failed = w.post.exchange(ctx, "Broadcast", new(parcel), long(w, 0, data))
				return nil
			}, apart()...)
			var peer *PeerError
			require.ErrorAs(t, failed, &peer)
			require.Equal(t, 0, peer.Rank)
			require.ErrorContains(t, failed, c.says)
			check(t)
			require.Equal(t, bytes.Repeat([]byte{0xa5}, len(data)), data)
		})
	}
}

// asked tells whether a rank is ready for a message by rendezvous.
func (w *World) asked(rank int) bool {
	w.engine.Lock()
	defer w.engine.Unlock()
	return w.post.box(rank).ready
}
