package window

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// openDescriptors is how many this process has, 0 where the system does not say.
func openDescriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// Sessions send random messages while the host locks and accumulates. Whatever they send, the host's own operations are
// right, and what the sessions had returns: locks, seats and descriptors.
func TestRandomMessages(t *testing.T) {
	const seats, adds = 2, 50
	ctx, cancel := context.WithTimeout(t.Context(), 4*await.Limit)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 64, Seats(seats))
		require.NoError(t, err)
		// Nothing of this one is served: no client reaches it.
		own, err := Allocate[int64](ctx, w, 1)
		require.NoError(t, err)
		var server Server
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, l, win.As("words")) }()
		descriptors := openDescriptors()
		done := make(chan struct{})
		var clients sync.WaitGroup
		for client := range uint64(3) {
			random := testsize.Random(t, client)
			clients.Go(func() {
				for range testsize.N(2) {
					if err := sendRandom(ctx, l.Addr().String(), random); err != nil {
						t.Error(err)
					}
				}
			})
		}
		go func() {
			clients.Wait()
			close(done)
		}()
		var sum int64
		for running := true; running; {
			for i := range adds {
				kind := []LockKind{Shared, Exclusive}[i%2]
				require.NoError(t, errors.Join(
					win.Lock(ctx, kind, 0), win.Accumulate(Sum, []int64{1}, 0, i), win.Unlock(ctx, 0),
					own.Lock(ctx, kind, 0), own.Accumulate(Sum, []int64{1}, 0, 0), own.Unlock(ctx, 0)))
				sum++
			}
			select {
			case <-done:
				running = false
			default:
			}
		}
		await.True(t, "all sessions to end", func() bool { return len(server.Sessions()) == 0 })
		require.NoError(t, errors.Join(win.Lock(ctx, Exclusive, 0), win.Unlock(ctx, 0)))
		require.Equal(t, sum, own.Local()[0])
		win.core.seats.mu.Lock()
		require.False(t, slices.ContainsFunc(win.core.seats.guests, func(g *guest) bool { return g != nil }))
		win.core.seats.mu.Unlock()
		for origin := range win.core.holders() {
			require.Zero(t, win.core.own.control.pair(origin, sharedAt).Load())
		}
		require.Zero(t, win.core.own.control.wishes().Load())
		await.True(t, "all descriptors to return", func() bool { return openDescriptors() <= descriptors })
		return errors.Join(l.Close(), <-served, win.Close(), own.Close())
	}))
}

// sendRandom begins a session and sends random messages until the session has ended.
func sendRandom(ctx context.Context, address string, random *rand.Rand) error {
	w, err := world.Dial(ctx, address, world.WithoutKey())
	if err != nil {
		return err
	}
	var number uint32
	win, err := Attach[int64](ctx, w, "words")
	switch {
	case err == nil:
		number = win.core.number
	case !errors.Is(err, ErrNoSeat):
		return err
	}
	v := job.Of(w).Attached(visitorKey{}, func() any { return newVisitor(jobOf(w)) }).(*visitor)
	link, err := job.Of(w).Link(0)
	for range 200 {
		if err != nil {
			break
		}
		m, payload := randomMessage(random, v.number, number)
		err = link.TellWithin(ctx, &m, payload)
		link.Post()
		job.Of(w).Poll()
	}
	return w.Close()
}

// randomMessage is one that a client may send, or one that no client sends.
func randomMessage(random *rand.Rand, visitor, number uint32) (m job.Message, payload []byte) {
	small := func() uint64 { return uint64(random.IntN(4)) }
	m = job.Message{
		Kind: []uint8{messagePacket, messageGate, messageMark, messageWord, messageLock, messageLock, messageUnlock, messageUnlock, messageComplete, messageAttach, messageDetach, messageGranted, uint8(random.Uint32())}[random.IntN(13)],
		A:    uint8(small()), B: uint8(small()), Service: number, X: small(), Y: 0, Z: small(),
	}
	switch random.IntN(8) {
	case 0:
		m.Service = visitor
	case 1:
		m.Service = uint32(small())
	case 2:
		m.X, m.Y, m.Z = random.Uint64(), random.Uint64(), random.Uint64()
	case 3:
		payload = make([]byte, random.IntN(200))
		for i := range payload {
			payload[i] = byte(random.Uint32() & random.Uint32())
		}
	}
	if m.Kind == messageAttach {
		m.Service, payload = visitor, encodeRequest(reduce.KindOf[int64](), "words")
	}
	return m, payload
}
