package job

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
)

// apart are options under which ranks that are goroutines map no memory of each
// other, although the device could: everything goes over links.
func apart() []Option {
	return over(func(_ int, d verbs.Device) verbs.Device { return struct{ verbs.Device }{d} })
}

// over are options under which they reach each other over devices in the place of those of their
// process.
func over(hide func(rank int, d verbs.Device) verbs.Device) []Option {
	fabric := shm.NewFabric()
	return []Option{WithDevice("tcp"), WithNetwork(func(rank int) (verbs.Device, error) {
		device, err := fabric.Open()
		return hide(rank, device), err
	})}
}

// towards has rank 0 of two reach rank 1, which has exposed so many bytes of theirs.
func towards(t *testing.T, bytes int, body func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error, options ...Option) {
	t.Helper()
	places, theirs := make([]Places, 1), make([]byte, bytes)
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			region, err := w.Register(theirs, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
			if err != nil {
				return err
			}
			places[0] = region.Remote()
		}
		if err := Broadcast(ctx, w, 1, places); err != nil || w.rank == 1 {
			return errors.Join(err, w.Barrier(ctx))
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		return errors.Join(body(ctx, l, w.Place(1, &places[0]), theirs), w.Barrier(ctx))
	}, options...))
}

// runApart runs a body over ranks that are apart.
func runApart(t *testing.T, n int, body func(ctx context.Context, w *World) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	require.NoError(t, Run(ctx, n, body, apart()...))
}

func TestBarrierApart(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var arrived atomic.Int64
			runApart(t, n, func(ctx context.Context, w *World) error {
				for round := range 50 {
					arrived.Add(1)
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					if got := arrived.Load(); got < int64(n*(round+1)) {
						return fmt.Errorf("rank %d passed barrier %d when %d had come", w.rank, round, got)
					}
				}
				return nil
			})
		})
	}
}

func TestCollectivesApart(t *testing.T) {
	runApart(t, 5, func(ctx context.Context, w *World) error {
		sum := make([]int, 1)
		if err := AllReduce(ctx, w, []int{w.Rank()}, sum, func(a, b int) int { return a + b }); err != nil {
			return err
		}
		if sum[0] != 10 {
			return fmt.Errorf("sum %d", sum[0])
		}
		return w.Barrier(ctx)
	})
}

// Ranks that call different collectives all hear so, without mapped ledgers.
func TestMismatchApart(t *testing.T) {
	err := Run(t.Context(), 3, func(ctx context.Context, w *World) error {
		ctx, cancel := context.WithTimeout(ctx, await.Limit)
		defer cancel()
		if w.rank == 1 {
			return Broadcast(ctx, w, 0, make([]int, 4))
		}
		return w.Barrier(ctx)
	}, apart()...)
	require.ErrorIs(t, err, ErrMismatch)
}

// A rank that fails is an error to all that wait, also those that wait for another.
func TestFailureApart(t *testing.T) {
	cause := fmt.Errorf("enough")
	err := Run(t.Context(), 4, func(ctx context.Context, w *World) error {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.rank == 2 {
			return cause
		}
		return w.Barrier(ctx)
	}, apart()...)
	require.ErrorIs(t, err, cause)
}

// echo answers with its payload, and counts what it is told.
type echo struct{ told atomic.Int64 }

func (e *echo) Serve(from *Link, m *Message, payload []byte) error {
	switch m.Kind {
	case FirstKind:
		from.Answer(payload)
	case FirstKind + 1:
		e.told.Add(int64(m.X))
	default:
		return fmt.Errorf("no kind %d here", m.Kind)
	}
	return nil
}

// TestLink writes, reads, tells and asks over a link, more than it holds at once.
func TestLink(t *testing.T) {
	const count = 500
	var service echo
	places := make([]Places, 1)
	memory := make([]byte, 8*count)
	runApart(t, 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			region, err := w.Register(memory, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
			if err != nil {
				return err
			}
			places[0] = region.Remote()
			defer w.Serve(7, &service)()
			if err := Broadcast(ctx, w, 1, places); err != nil {
				return err
			}
			return w.Barrier(ctx)
		}
		if err := Broadcast(ctx, w, 1, places); err != nil {
			return err
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		to := w.Place(1, &places[0])
		written, read, answers := make([]byte, 8*count), make([]byte, 8*count), make([][]byte, count)
		for i := range count {
			copy(written[8*i:], fmt.Sprintf("%08d", i))
			if err := l.Write(ctx, written[8*i:][:8], to, uint64(8*i)); err != nil {
				return err
			}
			if err := l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: uint64(i)}, nil); err != nil {
				return err
			}
			answers[i] = make([]byte, i)
			if err := l.Ask(ctx, &Message{Kind: FirstKind, Service: 7}, written[:i], answers[i]); err != nil {
				return err
			}
		}
		if err := l.Flush(ctx); err != nil {
			return err
		}
		if got := service.told.Load(); got != count*(count-1)/2 {
			return fmt.Errorf("told %d", got)
		}
		for i := range count {
			if err := l.Read(ctx, read[8*i:][:8], to, uint64(8*i)); err != nil {
				return err
			}
			if string(answers[i]) != string(written[:i]) {
				return fmt.Errorf("answer %d is %q", i, answers[i])
			}
		}
		if err := l.Settle(ctx); err != nil {
			return err
		}
		if string(read) != string(written) {
			return fmt.Errorf("read something else than was written")
		}
		if err := l.Tell(&Message{Kind: FirstKind + 9, Service: 7}, nil); err != nil {
			return err
		}
		var refused *RejectionError
		if err := l.Flush(ctx); err == nil || !asRefusal(err, &refused) {
			return fmt.Errorf("a message that was refused: %v", err)
		}
		if err := l.Flush(ctx); err != nil {
			return err
		}
		return w.Barrier(ctx)
	})
}

func asRefusal(err error, into **RejectionError) bool {
	e, ok := err.(*RejectionError)
	*into = e
	return ok
}

// A meteredDevice needs registered memory for all that it sends, and counts what is registered.
type meteredDevice struct {
	registering
	registered *atomic.Int64
}

func (d meteredDevice) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	d.registered.Add(int64(len(memory)))
	return d.registering.RegisterMemory(memory, access)
}

// What a link keeps is bounded by what is outstanding, also where it is never empty. So are the eager buffers of its messages.
func TestLinkStaysSmall(t *testing.T) {
	var service echo
	var registered [2]atomic.Int64
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			defer w.Serve(7, &service)()
			return errors.Join(w.Barrier(ctx), w.Barrier(ctx))
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		const count = 50_000
		payload, sum := make([]byte, 200), int64(0)
		before := registered[0].Load()
		for i := range count {
			if err := l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: uint64(i)}, payload[:i%201]); err != nil {
				return err
			}
			sum += int64(i)
		}
		if err := l.Flush(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		requests, held := cap(l.requests), cap(l.held)
		l.mu.Unlock()
		if got := service.told.Load(); got != sum || requests > 8*mostSends || held > 8*mostSends {
			return fmt.Errorf("told %d, want %d; place for %d requests, %d held", got, sum, requests, held)
		}
		if buffers := int(registered[0].Load()-before) / w.linkLetter; buffers == 0 || buffers > 2*mostSends {
			return fmt.Errorf("%d eager buffers were registered for %d messages", buffers, count)
		}
		return w.Barrier(ctx)
	}, WithDevice("tcp"), WithNetwork(func(rank int) (verbs.Device, error) {
		d, err := tcp.Open(tcp.Options{Listen: "127.0.0.1:0"})
		return meteredDevice{registering{d}, &registered[rank]}, err
	}))
	require.NoError(t, err)
}

// Writes that nobody flushes complete all the same, and do not run over the queue.
func TestManyWrites(t *testing.T) {
	towards(t, 512, func(ctx context.Context, l *Link, to verbs.RemoteRegion, _ []byte) error {
		from := make([]byte, 512)
		for range 50_000 {
			if err := l.Write(ctx, from, to, 0); err != nil {
				return err
			}
		}
		return l.Flush(ctx)
	}, WithDevice("tcp"))
}

// What a message has more is behind its payload, as a part of it.
func TestMore(t *testing.T) {
	for payload := range 20 {
		for more := range 20 {
			const header = 2 * shortestHeader // with the word of X
			text, want := make([]byte, header+padded(payload+more)), make([]byte, payload+more)
			for i := range text {
				text[i] = 0xff
			}
			for i := range want {
				want[i] = byte(i + 1)
			}
			m := Message{Kind: FirstKind, X: 7, More: want[payload:]}
			m.encode(text, want[:payload])
			got, n, err := m.decode(text)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, len(text), n)
			require.Equal(t, make([]byte, n-header-len(want)), text[header+len(want):])
		}
	}
}

// A header has only the words that it needs, and what it has comes back.
func TestMessageHeader(t *testing.T) {
	const wide = 1 << 32
	for length, messages := range map[int][]Message{
		shortestHeader:      {{}, {Kind: kindFlush, question: true}, {Kind: FirstKind, Service: 1<<32 - 1}},
		shortestHeader + 8:  {{X: 1}, {X: wide - 1, A: 255, B: 255, question: true}, {B: 1}, {X: wide}, {Y: 1}, {Z: wide}},
		shortestHeader + 16: {{A: 1, X: wide}, {A: 1, X: 1, Y: 1}, {X: wide, Z: 1}, {Y: wide, Z: wide}},
		shortestHeader + 24: {{B: 1, X: wide, Y: 2}, {A: 1, Y: 1, Z: 3}, {X: wide, Y: 1, Z: 1}},
		longestHeader:       {{Kind: 255, A: 1, B: 2, Service: 3, X: 1<<64 - 1, Y: 1<<64 - 2, Z: 1<<64 - 3, question: true}},
	} {
		for _, m := range messages {
			has, header := m.layout()
			require.Equal(t, length, header, "%+v has words %b", m, has)
			text := make([]byte, header+8)
			m.encode(text, []byte("payload"))
			var got Message
			payload, n, err := got.decode(text)
			require.NoError(t, err)
			require.Equal(t, m, got)
			require.Equal(t, "payload", string(payload))
			require.Equal(t, len(text), n)
			for short := range len(text) {
				_, _, err = got.decode(text[:short:short])
				require.ErrorIs(t, err, ErrMessage, "%d of %d bytes", short, len(text))
			}
		}
	}
}

// A header with unknown words, or with bytes that must be zero and are not, is refused.
func TestMessageHeaderMalformed(t *testing.T) {
	for what, change := range map[string]func(text []byte){
		"an unknown word":         func(text []byte) { text[wordsAt] |= byte(isQuestion) << 1 },
		"a byte that is not zero": func(text []byte) { text[shortestHeader+2] = 1 },
		"another one":             func(text []byte) { text[shortestHeader+3] = 1 },
		"X twice":                 func(text []byte) { text[shortestHeader+4] = 1 },
		"a payload without end":   func(text []byte) { text[3] = 0xff },
	} {
		m := Message{Kind: FirstKind, A: 1, X: 1 << 32}
		_, header := m.layout()
		text := make([]byte, header+8)
		m.encode(text, []byte("payload"))
		change(text)
		_, _, err := m.decode(text)
		require.ErrorIs(t, err, ErrMessage, what)
	}
}

// What makeNothing has made of a message is as long, and asks for nothing.
func TestMakeNothing(t *testing.T) {
	for _, m := range []Message{{}, {Kind: kindAnswer, X: 1}, {Kind: 255, A: 1, X: 1 << 63, Y: 1, Z: 1, question: true}} {
		_, header := m.layout()
		text := make([]byte, header+padded(3))
		m.encode(text, []byte{1, 2, 3})
		makeNothing(text)
		payload, n, err := m.decode(text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
		require.Equal(t, Message{Kind: kindNothing}, m)
		require.Len(t, payload, n-shortestHeader)
	}
}

// The longest payload goes whatever the header has, and a longer one is refused even where the header is short.
func TestMaxPayload(t *testing.T) {
	towards(t, 8, func(ctx context.Context, l *Link, _ verbs.RemoteRegion, _ []byte) error {
		most := make([]byte, l.MaxPayload())
		wide := Message{Kind: kindNothing, A: 1, X: 1 << 63, Y: 1, Z: 1}
		if err := errors.Join(l.TellWithin(ctx, &Message{Kind: kindNothing}, most), l.TellWithin(ctx, &wide, most)); err != nil {
			return err
		}
		if err := l.TellWithin(ctx, &Message{Kind: kindNothing}, append(most, 0)); !errors.Is(err, ErrArgument) {
			return fmt.Errorf("error is %w", err)
		}
		return l.Flush(ctx)
	}, WithDevice("tcp"))
}
