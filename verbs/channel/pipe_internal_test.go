package channel

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/verbs"
)

// piped are two pollers whose messages go by pipes.
func piped(t testing.TB, connections int) (p, q *Poller) {
	p, q = two(t, Options{MaxMessage: 2 * MostPiped, Budget: time.Second}, connections)
	for _, e := range q.ends {
		require.True(t, e.channel.ownsPipe())
		require.Nil(t, e.channel.in.memory)
	}
	return p, q
}

// end polls until a connection of q's has ended.
func end(t *testing.T, p, q *Poller) error {
	t.Helper()
	for range 100 {
		p.Poll(nil)
		if n := q.Poll(into[:]); n > 0 {
			require.Equal(t, 1, n)
			require.Error(t, into[0].Err)
			require.Same(t, q.ends[0], into[0].End)
			return into[0].Err
		}
	}
	t.Fatal("the connection has not ended")
	return nil
}

// drain takes all that there is.
func drain(p *Poller) {
	for vain := 0; vain < 2*mostFound; vain++ {
		if p.Poll(into[:1]) > 0 {
			into[0].End.Release(&into[0])
			vain = 0
		}
	}
}

// What a peer stores in a pipe, or says of one, against the protocol ends its connection, with an error that
// says what it was, and no other.
func TestGarbageInPipe(t *testing.T) {
	// published is a message with a stamp.
	published := func(t *testing.T, e *End, n int, s stamp) {
		place, err := e.channel.out.pipe.Place(n)
		require.NoError(t, err)
		if n >= StampBytes {
			binary.NativeEndian.PutUint64(place, uint64(s))
		}
		e.channel.out.pipe.Send(n)
	}
	usual := func(e *End) stamp { return usesBit | polledBit | stamp(e.channel.out.sequence) }
	for text, spoil := range map[string]func(t *testing.T, e, far *End){
		"a message of 4294967295 bytes; allowed are 1 to": func(t *testing.T, e, far *End) {
			published(t, e, 1, 0)
			memory := far.own.Memory()
			for at := 64; at+8 <= len(memory); at += 64 {
				if head := memory[at : at+8]; binary.NativeEndian.Uint64(head)>>32 == 1 {
					binary.NativeEndian.PutUint32(head[4:], 1<<32-1)
				}
			}
		},
		"the length of a message in the pipe is 8":   func(t *testing.T, e, far *End) { published(t, e, 8, usual(e)) },
		"the length of a message in the pipe is 1":   func(t *testing.T, e, far *End) { published(t, e, 1, 0) },
		"the number of a message in the pipe is":     func(t *testing.T, e, far *End) { published(t, e, 9, usual(e)-1) },
		"that the pipe is used, said in the pipe,":   func(t *testing.T, e, far *End) { published(t, e, 9, usual(e)&^usesBit) },
		"the number of buffers that are credited is": func(t *testing.T, e, far *End) { published(t, e, 9, usual(e)|1<<creditShift) },
		"the number of an eager message is": func(t *testing.T, e, far *End) {
			e.channel.out.sequence++
			require.NoError(t, e.sendEager(kindMessage, []byte("early"), verbs.Segment{}))
		},
		"the length of an offer of a pipe is 28": func(t *testing.T, e, far *End) {
			require.NoError(t, e.sendEager(kindPipe, make([]byte, pipeOfferHead), verbs.Segment{}))
		},
		"a pipe of {Lines:0 MaxMessage:0}; allowed is": func(t *testing.T, e, far *End) {
			require.NoError(t, e.sendEager(kindPipe, make([]byte, pipeOfferHead+1), verbs.Segment{}))
		},
		"pipes that the peer has offered is 2": func(t *testing.T, e, far *End) {
			require.NoError(t, e.sendEager(kindPipe, e.pipeOffer(), verbs.Segment{}))
		},
		"pipes that cannot be mapped is 1": func(t *testing.T, e, far *End) { require.NoError(t, e.sendEager(kindUnmapped, nil, verbs.Segment{})) },
	} {
		t.Run(text, func(t *testing.T) {
			p, q := piped(t, 2)
			spoil(t, p.ends[0], q.ends[0])
			err := end(t, p, q)
			require.ErrorIs(t, err, ErrProtocol)
			require.ErrorContains(t, err, text)
			require.ErrorIs(t, q.ends[0].Send([]byte{1}), ErrProtocol)
			drain(p)
			exchange(t, p, q, 1)
			exchange(t, q, p, 1)
		})
	}
}

// One that says that it has room where it has none is found out by who writes.
func TestRoomThatIsNone(t *testing.T) {
	p, q := piped(t, 2)
	binary.NativeEndian.PutUint64(q.ends[0].own.Memory(), 1<<40)
	var err error
	for range 4 * PipeLines {
		if err = p.ends[0].Send(aMessage); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorIs(t, err, pipe.ErrProtocol)
	require.Equal(t, 1, p.Poll(into[:]))
	require.ErrorIs(t, into[0].Err, pipe.ErrProtocol)
	drain(q)
	exchange(t, p, q, 1)
}

// A writer that does not wait for room does not come by memory of messages that are held.
func TestMoreThanThereIsRoom(t *testing.T) {
	p, q := piped(t, 1)
	e := p.ends[0]
	var held []Arrival
	// The lines before the next message.
	_, number := q.ends[0].channel.in.pipe.Look()
	passed := uint64(number - 1)
	for i := range uint64(2 * PipeLines) {
		// As if all had been freed.
		binary.NativeEndian.PutUint64(q.ends[0].own.Memory(), passed+i)
		sent, err := e.channel.sendOnPipe(aMessage, nil)
		require.NoError(t, err)
		require.True(t, sent)
		if n := q.Poll(into[:1]); n == 1 && into[0].Err != nil {
			require.ErrorIs(t, into[0].Err, pipe.ErrProtocol)
			require.ErrorContains(t, into[0].Err, "lines in use")
			require.GreaterOrEqual(t, i, uint64(PipeLines-1))
			return
		}
		held = append(held, into[0])
	}
	t.Fatal("nothing was said of", len(held), "messages that were held")
}

// Where one of the two maps nothing, the other's pipe is given up for a ring.
func TestUnmapped(t *testing.T) {
	for name, without := range map[string]func(p *Poller){
		"left off": func(p *Poller) { p.mapper = nil },
		"refused":  func(p *Poller) { p.mapper = refuses{} },
	} {
		t.Run(name, func(t *testing.T) {
			p, q := connect(t, Options{Budget: time.Second}, 2)
			without(p)
			settle(t, p, q, 2)
			for _, e := range q.ends {
				require.False(t, e.channel.ownsPipe())
				require.True(t, e.channel.Owns())
			}
			require.Equal(t, 2, q.Polled())
			byRing := p.ends[0].channel.Mark()
			exchange(t, p, q, 0)
			require.Less(t, byRing, p.ends[0].channel.Mark())
		})
	}
}

// refuses maps nothing.
type refuses struct{}

var errRefused = errors.New("refused")

func (refuses) Neighbor(string) (verbs.Neighbor, error) { return nil, errRefused }

// TestPrepareSleepWithPipes: a message by a pipe wakes a rank that has prepared to sleep.
func TestPrepareSleepWithPipes(t *testing.T) {
	p, q := piped(t, 1)
	for range 3 {
		q.PrepareSleep()
		channel := q.device.Channel()
		ticket := channel.Prepare()
		require.Zero(t, q.Poll(into[:]))
		slept := make(chan struct{})
		go func() {
			channel.Sleep(ticket, -1)
			close(slept)
		}()
		sent := p.ends[0].sent
		require.NoError(t, p.ends[0].Send(aMessage))
		require.Equal(t, sent, p.ends[0].sent, "it went as an eager message")
		<-slept
		channel.Finish()
		require.Equal(t, 1, q.Poll(into[:]))
		q.ends[0].Release(&into[0])
	}
}

// What was sent before the sender has closed comes before the word of that, by pipe and as eager messages, even where
// there is room for one at a time.
func TestCloseAfterMessages(t *testing.T) {
	for _, whole := range []bool{false, true} {
		p, q := piped(t, 1)
		long := make([]byte, MostPiped+1)
		for _, payload := range [][]byte{aMessage, long, aMessage, aMessage} {
			require.NoError(t, p.ends[0].Send(payload))
		}
		if whole {
			require.NoError(t, p.device.Close())
		} else {
			require.NoError(t, p.ends[0].Close())
		}
		for i := range 4 {
			require.Equal(t, 1, q.Poll(into[:1]))
			require.NoError(t, into[0].Err, i)
			q.ends[0].Release(&into[0])
		}
		for i := 0; q.Poll(into[:1]) == 0; i++ {
			require.Less(t, i, 10*mostFound)
		}
		require.Error(t, into[0].Err)
		require.Error(t, q.ends[0].Send(aMessage))
	}
}

// If a pipe is full, the next messages are eager messages, in order.
func TestFullPipe(t *testing.T) {
	p, q := piped(t, 1)
	e, sent := p.ends[0], byte(0)
	for {
		err := e.Send([]byte{sent})
		if errors.Is(err, verbs.ErrQueueFull) {
			break
		}
		require.NoError(t, err)
		sent++
		if sent == 0 {
			require.Less(t, int(e.sent-e.gone), 2)
		}
	}
	got := byte(0)
	for i := 0; got != sent; i++ {
		require.Less(t, i, 1<<16)
		if p.Poll(nil); q.Poll(into[:1]) == 1 {
			require.NoError(t, into[0].Err)
			require.Equal(t, []byte{got}, into[0].Payload)
			got++
			q.ends[0].Release(&into[0])
		}
	}
}

// FuzzPipe: whatever the peer leaves in a pipe, messages of its memory come, or an error that says what is
// wrong, in whatever order they are freed.
func FuzzPipe(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x11\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc0abcdefghi"), uint8(0))
	f.Add([]byte("\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc0"), uint8(1))
	f.Add([]byte("\x01\x00\x00\x00\xff\xff\xff\xff"), uint8(2))
	f.Fuzz(func(t *testing.T, garbage []byte, order uint8) {
		c, shape := New(Traits{}), pipe.Config{Lines: 8, MaxMessage: 100}
		memory := aligned(shape.Bytes())
		require.NoError(t, c.ownPipe(shape, memory))
		copy(memory[64:], garbage)
		c.SetPolled(true)
		held := make([]Message, 0, 4*shape.Lines)
		require.LessOrEqual(t, allocs.Of(func() {
			for range 4 * shape.Lines {
				var m Message
				some, err := c.pollPipe(&m)
				if err != nil {
					require.ErrorIs(t, err, ErrProtocol)
					break
				}
				if some {
					require.Positive(t, len(m.Payload))
					require.LessOrEqual(t, len(m.Payload), shape.MaxMessage-StampBytes)
					held = append(held, m)
				}
				if len(held) > int(order%8) {
					i := int(order) % len(held)
					c.freeOfPipe(&held[i])
					held = slices.Delete(held, i, i+1)
				}
			}
		}), mostAllocated)
	})
}

// The memory of a pipe is not given back before the peer has said that it stores there no more.
func TestRetiredPipe(t *testing.T) {
	p, q := two(t, Options{}, 1)
	near, far := p.ends[0], q.ends[0]
	require.True(t, near.channel.ownsPipe())
	require.NoError(t, near.Close())
	require.Len(t, p.retired, 1)
	require.NoError(t, p.freeRetired())
	require.Len(t, p.retired, 1)
	// The peer does not know yet.
	sent, err := far.channel.sendOnPipe(aMessage, nil)
	require.NoError(t, err)
	require.True(t, sent)
	for far.Err() == nil {
		q.Poll(into[:])
	}
	require.False(t, far.Lent())
	require.NoError(t, p.freeRetired())
	require.Empty(t, p.retired)
	require.NoError(t, far.Close())
	require.Empty(t, q.retired, "its peer had left before")
}

// TestPrepareSleepAfterQuietPolls: a rank that has polled pipes alone takes eager messages before it sleeps.
func TestPrepareSleepAfterQuietPolls(t *testing.T) {
	p, q := piped(t, 1)
	for !q.quiet || q.found > mostFound/2 {
		exchange(t, p, q, 0)
	}
	require.NoError(t, p.ends[0].Send(make([]byte, MostPiped+1)))
	require.Zero(t, q.Poll(into[:]), "the queue is not looked at yet")
	q.PrepareSleep()
	require.Equal(t, 1, q.Poll(into[:]))
	q.ends[0].Release(&into[0])
}
