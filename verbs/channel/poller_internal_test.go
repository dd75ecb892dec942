package channel

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// two are pollers of one process with connections between them, whose rings or pipes are polled.
func two(t testing.TB, options Options, connections int) (p, q *Poller) {
	t.Helper()
	p, q = connect(t, options, connections)
	settle(t, p, q, connections)
	return p, q
}

// connect makes pollers with connections between them.
func connect(t testing.TB, options Options, connections int) (p, q *Poller) {
	t.Helper()
	if options.Budget == 0 {
		// All rings are looked at, whatever that takes here.
		options.Budget = time.Minute
	}
	fabric := shm.NewFabric()
	for _, made := range []**Poller{&p, &q} {
		device, err := fabric.Open()
		require.NoError(t, err)
		*made, err = NewPoller(device, options)
		require.NoError(t, err)
		t.Cleanup(func() {
			// A test may have closed the device.
			if err := (*made).Close(); !errors.Is(err, verbs.ErrClosed) {
				require.NoError(t, err)
			}
			require.NoError(t, device.Close())
		})
	}
	for range connections {
		_, err := p.Connect(q.device.Address(), nil)
		require.NoError(t, err)
		var requests [1]verbs.ConnectionRequest
		require.Equal(t, 1, q.device.PollConnections(requests[:]))
		_, err = q.Accept(requests[0])
		require.NoError(t, err)
	}
	return p, q
}

// settle exchanges messages until all connections are in the polling sets.
func settle(t testing.TB, p, q *Poller, connections int) {
	t.Helper()
	for range 4 * periodMessages {
		for i := range connections {
			exchange(t, p, q, i)
			exchange(t, q, p, i)
		}
	}
}

var (
	aMessage = []byte("a message")
	into     [2]Arrival
)

// exchange sends a message over a connection and takes it.
func exchange(t testing.TB, from, to *Poller, connection int) {
	t.Helper()
	if err := from.ends[connection].Send(aMessage); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		// What follows an eager message leaves when the sender knows that it was taken.
		from.Poll(nil)
		if n := to.Poll(into[:]); n == 1 && into[0].Err == nil && into[0].End == to.ends[connection] && bytes.Equal(into[0].Payload, aMessage) {
			into[0].End.Release(&into[0])
			return
		} else if n > 0 {
			t.Fatalf("%+v", into[:n])
		}
	}
	t.Fatal("no message")
}

// What a peer writes or sends against the protocol ends its connection, with an error that says
// what it was, and no other.
func TestGarbageEndsOne(t *testing.T) {
	for text, spoil := range map[string]func(e *End){
		"the flag of a message is 255; allowed is 1 to 3": func(e *End) {
			first := e.channel.out.next * e.peer.BufferBytes
			memory := e.mirror.Memory()[first : first+wordBytes]
			copy(memory, "\xff\xff\xff\xff\xff\xff\xff\xff")
			e.gather(e.request(0, verbs.OpRDMAWrite, first), 0, verbs.Segment{Memory: memory, LKey: e.mirror.LKey()})
			require.NoError(t, e.post(1, false))
		},
		"the number of an eager message is": func(e *End) {
			e.channel.out.sequence++
			require.NoError(t, e.sendEager(kindMessage, []byte("early"), verbs.Segment{}))
		},
		"the kind or length of an eager message is": func(e *End) { require.NoError(t, e.sendEager(kinds, nil, verbs.Segment{})) },
		"the length of an offer is":                 func(e *End) { require.NoError(t, e.sendEager(kindOffer, nil, verbs.Segment{})) },
		"rings that the peer has offered is 2": func(e *End) {
			offer := OfferOf(DefaultConfig(), verbs.RemoteRegion{})
			encoded := make([]byte, OfferBytes)
			offer.Encode(encoded)
			require.NoError(t, e.sendEager(kindOffer, encoded, verbs.Segment{}))
		},
	} {
		p, q := two(t, Options{WithoutPipes: true}, 2)
		require.Equal(t, 2, q.Polled())
		spoil(p.ends[0])
		n := 0
		for i := 0; i < 100 && n == 0; i++ {
			p.Poll(nil)
			n = q.Poll(into[:])
		}
		require.Equal(t, 1, n)
		require.Same(t, q.ends[0], into[0].End)
		require.ErrorIs(t, into[0].Err, ErrProtocol)
		require.ErrorContains(t, into[0].Err, text)
		require.Equal(t, 1, q.Polled())
		require.ErrorIs(t, q.ends[0].Send([]byte{1}), ErrProtocol)
		require.ErrorIs(t, q.ends[0].Err(), ErrProtocol)
		exchange(t, p, q, 1)
	}
}

// TestFair: each ring has its turn, and so has an eager message, where there is room for one message at a time and
// others are always full.
func TestFair(t *testing.T) {
	for _, without := range []bool{true, false} {
		fair(t, Options{MaxMessage: MostPiped + 1, EagerMessages: 4, WithoutPipes: without})
	}
}

func fair(t *testing.T, options Options) {
	p, q := two(t, options, 3)
	long := make([]byte, MostPiped+1)
	require.NoError(t, p.ends[2].Send(long))
	var got [3]int
	for range 60 {
		for _, e := range p.ends[:2] {
			_ = e.Send(aMessage)
		}
		p.Poll(nil)
		if q.Poll(into[:1]) == 1 {
			require.NoError(t, into[0].Err)
			got[into[0].End.channel.ID]++
			into[0].End.Release(&into[0])
		}
	}
	require.Greater(t, got[0], 15)
	require.Greater(t, got[1], 15)
	require.Equal(t, 1, got[2])
}

// TestPrepareSleep: after a rank without pipes has prepared to sleep, its peers send eager messages until they are busy
// again.
func TestPrepareSleep(t *testing.T) {
	p, q := two(t, Options{WithoutPipes: true}, 1)
	require.Equal(t, 1, q.Polled())
	byRing := p.ends[0].channel.Mark()
	q.PrepareSleep()
	require.True(t, q.ends[0].channel.Draining())
	for i := 0; q.ends[0].channel.Draining(); i++ {
		require.Less(t, i, 10)
		p.Poll(nil)
		q.Poll(into[:])
	}
	exchange(t, p, q, 0)
	require.Equal(t, byRing, p.ends[0].channel.Mark())
	for range 2 * periodMessages {
		exchange(t, p, q, 0)
		p.Poll(nil)
	}
	require.Less(t, byRing, p.ends[0].channel.Mark())
}

// A connection that was closed gives its place and its memory back.
func TestCloseEnd(t *testing.T) {
	p, q := two(t, Options{}, 2)
	for range 3 {
		require.NoError(t, q.ends[1].Close())
		require.NoError(t, p.ends[1].Close())
		_, err := p.Connect(q.device.Address(), nil)
		require.NoError(t, err)
		var requests [1]verbs.ConnectionRequest
		require.Equal(t, 1, q.device.PollConnections(requests[:]))
		_, err = q.Accept(requests[0])
		require.NoError(t, err)
		require.Len(t, q.ends, 2)
		exchange(t, p, q, 1)
		exchange(t, p, q, 0)
	}
}

// Messages allocate nothing, whichever way they go.
func TestMessagesAllocateNothing(t *testing.T) {
	for _, options := range []Options{{Budget: -1}, {WithoutPipes: true}, {}} {
		p, q := two(t, options, 1)
		require.Equal(t, options.Budget == 0, q.Polled() > 0)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			exchange(t, p, q, 0)
			exchange(t, q, p, 0)
		}), "%+v", options)
	}
}

// pass sends a message from one to another.
func pass(b *testing.B, from, to *Poller) {
	if err := from.ends[0].Send(aMessage[:8]); err != nil {
		b.Fatal(err)
	}
	for to.Poll(into[:1]) == 0 {
		// What follows an eager message leaves when the sender knows that it was taken.
		from.Poll(nil)
	}
	to.ends[0].Release(&into[0])
}

// BenchmarkExchange is there and back within one process: what the library does itself.
func BenchmarkExchange(b *testing.B) {
	for name, options := range map[string]Options{"pipes": {}, "rings": {WithoutPipes: true}, "eager": {Budget: -1}} {
		b.Run(name, func(b *testing.B) {
			p, q := two(b, options, 1)
			b.ReportAllocs()
			for b.Loop() {
				pass(b, p, q)
				pass(b, q, p)
			}
		})
	}
}

// FuzzOffer has a peer offer anything: it is a ring no longer than this side's own, one that can be mapped, or an
// error.
func FuzzOffer(f *testing.F) {
	own := DefaultConfig()
	for _, config := range []Config{own, {mostBuffers, mostRingBytes / mostBuffers, 1}, {2, mostRingBytes / 2, mostRingBytes / 2}} {
		encoded := make([]byte, OfferBytes)
		offer := OfferOf(config, verbs.RemoteRegion{Address: 1 << 40})
		offer.Encode(encoded)
		f.Add(encoded)
	}
	_, q := piped(f, 1)
	f.Add(q.ends[0].pipeOffer())
	f.Add([]byte{})
	p, _ := connect(f, Options{}, 1)
	e := p.ends[0]
	f.Fuzz(func(t *testing.T, offer []byte) {
		for _, lend := range []func([]byte) error{e.lend, e.lendPipe} {
			var err error
			require.LessOrEqual(t, allocs.Of(func() { err = lend(offer) }), mostAllocated)
			if err != nil {
				require.ErrorIs(t, err, ErrProtocol)
			}
			if e.mirror == nil {
				continue
			}
			require.LessOrEqual(t, len(e.mirror.Memory()), own.Bytes())
			for range 2 {
				require.ErrorIs(t, e.lend(offer), errSecondRing)
			}
			require.NoError(t, FreeRing(p.device, e.mirror))
			e.mirror, e.channel.out.memory = nil, nil
		}
	})
}
