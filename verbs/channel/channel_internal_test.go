package channel

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// connected are two channels of which the first may write to the ring of the second.
func connected(t testing.TB, traits Traits, config Config) (from, to *Channel) {
	t.Helper()
	from, to = New(traits), New(traits)
	require.NoError(t, to.Own(config, aligned(config.Bytes())))
	require.NoError(t, from.Lend(config, aligned(config.Bytes())))
	to.SetPolled(true)
	require.True(t, to.NeedsStamp())
	sendStamp(t, to, from)
	require.False(t, to.NeedsStamp())
	return from, to
}

// sendStamp has a channel send another its stamp, as an eager message.
func sendStamp(t testing.TB, from, to *Channel) {
	t.Helper()
	message := make([]byte, StampBytes)
	from.StampEager(message)
	next, err := to.TakeEager(message)
	require.NoError(t, err)
	require.True(t, next)
}

// write has what a Write says placed.
func write(from, to *Channel, w Write) {
	copy(to.in.memory[w.Offset:w.Offset+w.Length], from.out.memory[w.Offset:])
	if w.Flagged {
		copy(to.in.memory[w.Flag:w.Flag+FlagBytes], from.out.memory[w.Flag:])
	}
}

func TestConfig(t *testing.T) {
	config := DefaultConfig()
	require.NoError(t, config.Check())
	require.Equal(t, 10<<10+256, config.Bytes())
	for _, wrong := range []Config{
		{}, {1, 64, 8}, {4, 0, 8}, {4, 72, 8}, {4, 64, 0}, {4, 64, 4*64 - overhead + 1},
		{mostBuffers + 1, 32, 8}, {mostBuffers, mostRingBytes, 8}, {-4, 64, 8}, {4, -64, 8}, {4, 64, -8},
	} {
		require.Error(t, wrong.Check(), "%+v", wrong)
		require.Error(t, New(Traits{}).Own(wrong, aligned(1<<12)), "%+v", wrong)
	}
	require.Error(t, New(Traits{}).Own(config, aligned(config.Bytes()+1)))
	require.Error(t, New(Traits{}).Own(config, aligned(config.Bytes() + 8)[1:config.Bytes()+1]))
}

func TestOffer(t *testing.T) {
	offer, got := OfferOf(DefaultConfig(), verbs.RemoteRegion{Address: 1 << 40, Length: 1, RKey: 77}), Offer{}
	encoded := make([]byte, OfferBytes)
	offer.Encode(encoded)
	require.NoError(t, got.Decode(encoded))
	require.Equal(t, offer, got)
	require.ErrorIs(t, got.Decode(encoded[1:]), ErrProtocol)
	encoded[0] = 1
	require.ErrorIs(t, got.Decode(encoded), ErrProtocol)
	encoded[0], encoded[15] = 0, 255
	require.ErrorIs(t, got.Decode(encoded), ErrProtocol)
	from, _ := connected(t, Traits{}, DefaultConfig())
	require.ErrorIs(t, from.Lend(DefaultConfig(), aligned(offer.Bytes())), ErrProtocol)
}

// Messages of all lengths come, whether by one write or by two, and what is longer than allowed
// has no place.
func TestLengths(t *testing.T) {
	for _, traits := range []Traits{{}, {Ordered: true}} {
		config := Config{Buffers: 8, BufferBytes: 64, MaxMessage: 300}
		from, to := connected(t, traits, config)
		require.Nil(t, to.Place(0), "there is no ring")
		require.Nil(t, from.Place(301))
		require.Nil(t, from.Place(-1))
		for n := 1; n <= 300; n++ {
			place := from.Place(n)
			require.Len(t, place, n)
			for i := range place {
				place[i] = byte(n + i)
			}
			w := from.Seal(n)
			require.Equal(t, !traits.Ordered, w.Flagged)
			write(from, to, w)
			m, some, err := to.Poll()
			require.NoError(t, err)
			require.True(t, some)
			require.Len(t, m.Payload, n)
			for i, b := range m.Payload {
				require.Equal(t, byte(n+i), b)
			}
			to.Free(m)
			sendStamp(t, to, from)
		}
	}
}

// A place that is asked for more and more goes on where it was; what was stored beyond what is
// sealed is not taken for what the peer has.
func TestPlaceGrows(t *testing.T) {
	from, to := connected(t, Traits{Ordered: true}, DefaultConfig())
	for _, n := range []int{8, 100, 800} {
		copy(from.Place(n)[n-8:], "12345678")
	}
	require.Equal(t, "12345678", string(from.Place(100)[92:]))
	// The tail would be where something was stored.
	w := from.Seal(92)
	require.True(t, w.Flagged)
	write(from, to, w)
	m, some, err := to.Poll()
	require.NoError(t, err)
	require.True(t, some)
	require.Equal(t, "12345678", string(m.Payload[:8]))
	to.Free(m)
	for i := 1; i < 66; i++ {
		place := from.Place(92)
		if place == nil {
			sendStamp(t, to, from)
			place = from.Place(92)
		}
		clear(place)
		w := from.Seal(92)
		require.Equal(t, i < 3, w.Flagged, "message %d", i)
		write(from, to, w)
		m, some, err = to.Poll()
		require.NoError(t, err)
		require.True(t, some)
		to.Free(m)
	}
}

// A ring whose credits are not sent has no room, and what a card that resends has not completed
// is not used again.
func TestRoom(t *testing.T) {
	config := Config{Buffers: 4, BufferBytes: 64, MaxMessage: 100}
	for _, resends := range []bool{false, true} {
		from, to := connected(t, Traits{Ordered: true, Resends: resends}, config)
		for range 4 {
			require.False(t, to.NeedsStamp() && to.in.tail < 2)
			from.Place(8)
			write(from, to, from.Seal(8))
			m, some, err := to.Poll()
			require.NoError(t, err)
			require.True(t, some)
			to.Free(m)
		}
		require.Nil(t, from.Place(8))
		require.True(t, to.NeedsStamp())
		sendStamp(t, to, from)
		require.Equal(t, resends, from.Place(8) == nil)
		// Of what was never used nothing can have completed.
		from.Completed(from.Mark() + 1)
		require.Equal(t, resends, from.Place(8) == nil)
		from.Completed(from.Mark())
		require.NotNil(t, from.Place(8))
	}
}

// A message that had its place before the peer asked to leave its ring still goes there. The peer
// polls on until an eager message says that there will be no other.
func TestLeaveMeanwhile(t *testing.T) {
	from, to := connected(t, Traits{Ordered: true}, DefaultConfig())
	from.Place(8)
	to.SetPolled(false)
	sendStamp(t, to, from)
	write(from, to, from.Seal(8))
	require.Nil(t, from.Place(8))
	require.True(t, from.NeedsStamp())
	m, some, err := to.Poll()
	require.NoError(t, err)
	require.True(t, some)
	to.Free(m)
	require.True(t, to.Draining())
	sendStamp(t, from, to)
	require.False(t, to.Draining())
	require.False(t, from.NeedsStamp())
}

// TestGarbage: what no peer writes or sends is an error that says so, and stays one.
func TestGarbage(t *testing.T) {
	config := Config{Buffers: 4, BufferBytes: 64, MaxMessage: 100}
	head := func(ring []byte, word uint64, s stamp) {
		binary.LittleEndian.PutUint64(ring, word)
		binary.LittleEndian.PutUint64(ring[wordBytes:], uint64(s))
	}
	for text, spoil := range map[string]func(ring []byte){
		"the length of a message is 101; allowed is 0 to 100":                           func(ring []byte) { head(ring, headWord(101, flagWhole), usesBit) },
		"the length of a message is 4294967295; allowed is 0 to 100":                    func(ring []byte) { head(ring, headWord(1<<32-1, flagOne), usesBit) },
		"the length of a message is 4294967304; allowed is 0 to 100":                    func(ring []byte) { head(ring, headWord(8, flagOne)|1<<32, usesBit) },
		"the flag of a message is 4; allowed is 1 to 3":                                 func(ring []byte) { head(ring, headWord(8, flagWhole+1), usesBit) },
		"the number of buffers that are credited is 1; allowed is 0 to 0":               func(ring []byte) { head(ring, headWord(8, flagWhole), usesBit|1<<creditShift) },
		"that the ring is used, said in the ring, is 0; allowed is 1 to 1":              func(ring []byte) { head(ring, headWord(8, flagWhole), 0) },
		"the number of a message in the ring is 4294967295; allowed is 0 to 2147483647": func(ring []byte) { head(ring, headWord(8, flagWhole), usesBit|1<<32-1) },
	} {
		_, to := connected(t, Traits{Ordered: true}, config)
		spoil(to.in.memory)
		for range 2 {
			_, some, err := to.Poll()
			require.False(t, some)
			require.ErrorIs(t, err, ErrProtocol, text)
			require.ErrorContains(t, err, text)
		}
		_, err := to.TakeEager(make([]byte, 8))
		require.ErrorContains(t, err, text)
	}

	// A flag without data waits, as data may be under way; an eager message shows that there is none.
	from, to := connected(t, Traits{Ordered: true}, config)
	head(to.in.memory, headWord(8, flagOne), usesBit)
	_, some, err := to.Poll()
	require.NoError(t, err)
	require.False(t, some)
	from.Place(8)
	from.Seal(8)
	message := make([]byte, StampBytes)
	from.StampEager(message)
	_, err = to.TakeEager(message)
	require.ErrorContains(t, err, "the number of an eager message is 1; allowed is 0 to 0")

	_, to = connected(t, Traits{}, config)
	_, err = to.TakeEager(make([]byte, 7))
	require.ErrorContains(t, err, "the length of an eager message is 7")
}

// mostAllocated is what may be allocated for what a peer has written: the errors of some messages, and what other
// goroutines of the process allocate meanwhile.
const mostAllocated = 64 << 10

// FuzzGarbage: whatever a peer writes and sends, nothing is read beyond the ring, and what is
// wrong is a ProtocolError.
func FuzzGarbage(f *testing.F) {
	config := Config{Buffers: 4, BufferBytes: 64, MaxMessage: 100}
	from, to := connected(f, Traits{Ordered: true}, config)
	for range 4 {
		from.Place(20)
		write(from, to, from.Seal(20))
	}
	f.Add(to.in.memory, []byte{1})
	f.Add([]byte{}, []byte{0, 0, 0, 0, 0, 0, 0, 1, 0})
	f.Fuzz(func(t *testing.T, written, message []byte) {
		_, to := connected(t, Traits{}, config)
		ring := to.in.memory
		copy(ring, written)
		held := make([]Message, 0, 8)
		require.LessOrEqual(t, allocs.Of(func() {
			for range 8 {
				m, some, err := to.Poll()
				var protocol *ProtocolError
				if err != nil && !errors.As(err, &protocol) {
					t.Fatalf("%v", err)
				}
				if some {
					if !bounds.Holds(ring, m.Payload) || len(m.Payload) > config.MaxMessage {
						t.Fatalf("%d bytes elsewhere than in the ring", len(m.Payload))
					}
					held = append(held, m)
				} else if next, err := to.TakeEager(message); err != nil && !errors.As(err, &protocol) || next && err != nil {
					t.Fatalf("%t, %v", next, err)
				}
			}
			for _, m := range held {
				to.Free(m)
			}
		}), mostAllocated)
	})
}

func TestAllocates(t *testing.T) {
	from, to := connected(t, Traits{}, DefaultConfig())
	message := make([]byte, StampBytes)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		from.Place(100)
		write(from, to, from.Seal(100))
		m, _, _ := to.Poll()
		to.Free(m)
		to.StampEager(message)
		_, _ = from.TakeEager(message)
	}))
}
