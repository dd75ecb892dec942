package window_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// limited runs body while a Server serves a window of words, and the same read-only.
func limited(t *testing.T, server *window.Server, body func(ctx context.Context, address string, own *window.Window[uint64])) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*await.Limit)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[uint64](ctx, w, 8, window.Seats(4))
		if err != nil {
			return err
		}
		other, err := window.Allocate[uint64](ctx, w, 8, window.Seats(4))
		if err != nil {
			return err
		}
		copy(other.Local(), []uint64{1, 2, 3})
		served, stop := context.WithCancel(ctx)
		var serving sync.WaitGroup
		var failed error
		serving.Go(func() { failed = server.Serve(served, l, win.As("words"), other.As("read").ReadOnly()) })
		body(ctx, l.Addr().String(), win)
		stop()
		serving.Wait()
		require.Empty(t, server.Sessions())
		return errors.Join(failed, win.Close(), other.Close())
	}))
}

// attached is a client of limited.
func attached(t *testing.T, ctx context.Context, address, name string) (*world.World, *window.Window[uint64]) {
	t.Helper()
	w, err := world.Dial(ctx, address, world.WithoutKey())
	require.NoError(t, err)
	win, err := window.Attach[uint64](ctx, w, name)
	require.NoError(t, err)
	return w, win
}

// evicted fails the test unless an error is that of a session which the server has ended, and says why.
func evicted(t *testing.T, err error, why string) {
	t.Helper()
	var lost *world.PeerError
	require.ErrorAs(t, err, &lost)
	require.Zero(t, lost.Rank)
	require.ErrorIs(t, err, world.ErrEvicted)
	require.ErrorContains(t, err, why)
}

// A client that falls silent while it holds a lock delays others for no longer than the limit. Its error names the
// window and the limit.
func TestStallingLockHolder(t *testing.T) {
	for _, kind := range []window.LockKind{window.Shared, window.Exclusive} {
		server := &window.Server{Limits: window.Limits{LockTime: 50 * time.Millisecond}}
		limited(t, server, func(ctx context.Context, address string, own *window.Window[uint64]) {
			w, stalls := attached(t, ctx, address, "words")
			require.NoError(t, errors.Join(stalls.Lock(ctx, kind, 0), stalls.Flush(ctx, 0)))
			there, other := attached(t, ctx, address, "words")
			require.NoError(t, errors.Join(other.Lock(ctx, window.Exclusive, 0), other.Put([]uint64{7}, 0, 0), other.Unlock(ctx, 0)))
			require.NoError(t, errors.Join(other.Close(), there.Close()))
			require.NoError(t, errors.Join(own.Lock(ctx, window.Exclusive, 0), own.Unlock(ctx, 0)))
			err := stalls.Unlock(ctx, 0)
			evicted(t, err, `the session held a lock of \"words\" for 50ms while others waited (Limits.LockTime)`)
			_ = stalls.Close()
			require.NoError(t, w.Close())
			require.EqualValues(t, 7, own.Local()[0])
		})
	}
}

// Sessions without a seat go for those that want one, and after their time.
func TestStallingBeforeAttach(t *testing.T) {
	limits := window.Limits{Sessions: 2, AttachTime: -1}
	limited(t, &window.Server{Limits: limits}, func(ctx context.Context, address string, _ *window.Window[uint64]) {
		var silent []*world.World
		for range 2 {
			w, err := world.Dial(ctx, address, world.WithoutKey())
			require.NoError(t, err)
			silent = append(silent, w)
		}
		var w *world.World
		await.True(t, "a session to go for another", func() bool {
			var err error
			if w, err = world.Dial(ctx, address, world.WithoutKey()); err != nil {
				require.ErrorIs(t, err, world.ErrEvicted)
				require.ErrorContains(t, err, "has 2 sessions, and no place for more (Limits.Sessions)")
			}
			return err == nil
		})
		win, err := window.Attach[uint64](ctx, w, "words")
		require.NoError(t, err)
		_, err = window.Attach[uint64](ctx, silent[0], "words")
		evicted(t, err, "Limits.Sessions")
		require.NoError(t, errors.Join(win.Close(), w.Close(), silent[0].Close(), silent[1].Close()))
	})
	limits = window.Limits{AttachTime: 20 * time.Millisecond}
	limited(t, &window.Server{Limits: limits}, func(ctx context.Context, address string, _ *window.Window[uint64]) {
		w, err := world.Dial(ctx, address, world.WithoutKey())
		require.NoError(t, err)
		ended := make(chan *world.PeerError, 1)
		w.OnFailure(func(err *world.PeerError) { ended <- err })
		if w.Err(0) == nil {
			require.Zero(t, (<-ended).Rank)
		}
		evicted(t, w.Err(0), "the session took no seat within 20ms (Limits.AttachTime)")
		require.NoError(t, w.Close())
	})
}

// A session that issues nothing ends, one that does stays.
func TestIdleSession(t *testing.T) {
	t.Parallel()
	server := &window.Server{Limits: window.Limits{IdleTime: 6 * time.Second}}
	limited(t, server, func(ctx context.Context, address string, _ *window.Window[uint64]) {
		idle, _ := attached(t, ctx, address, "words")
		w, works := attached(t, ctx, address, "words")
		require.NoError(t, works.LockAll(ctx, window.NoCheck))
		for idle.Err(0) == nil {
			require.NoError(t, errors.Join(works.Put([]uint64{1}, 0, 0), works.Flush(ctx, 0)))
			time.Sleep(10 * time.Millisecond) // computes
		}
		evicted(t, idle.Err(0), "the session issued no operation for 6s (Limits.IdleTime)")
		require.NoError(t, errors.Join(works.UnlockAll(ctx), works.Close(), w.Close(), idle.Close()))
	})
}

func TestEvict(t *testing.T) {
	var server window.Server
	limited(t, &server, func(ctx context.Context, address string, own *window.Window[uint64]) {
		w, win := attached(t, ctx, address, "words")
		require.NoError(t, errors.Join(win.Lock(ctx, window.Exclusive, 0), win.Flush(ctx, 0)))
		locked := make(chan error)
		go func() { locked <- errors.Join(own.Lock(ctx, window.Exclusive, 0), own.Unlock(ctx, 0)) }()
		await.True(t, "the session to hold a lock that others wait for", func() bool {
			all := server.Sessions()
			require.Len(t, all, 1)
			require.Len(t, all[0].Seats, 1)
			return all[0].Seats[0] == window.Seat{Window: "words", Exclusive: true, Blocks: true}
		})
		s := server.Sessions()[0]
		require.Contains(t, s.Address.String(), "127.0.0.1:")
		require.Nil(t, s.Certificate)
		require.False(t, s.Active.Before(s.Since))
		require.NoError(t, server.Evict(ctx, s.ID, errors.New("maintenance")))
		require.NoError(t, <-locked)
		require.ErrorIs(t, server.Evict(ctx, s.ID, errors.New("again")), window.ErrNoSession)
		evicted(t, win.Unlock(ctx, 0), "maintenance")
		_ = win.Close()
		require.NoError(t, w.Close())
	})
}

func TestReadOnly(t *testing.T) {
	limited(t, new(window.Server), func(ctx context.Context, address string, _ *window.Window[uint64]) {
		w, win := attached(t, ctx, address, "read")
		require.ErrorIs(t, win.Lock(ctx, window.Exclusive, 0), window.ErrReadOnly)
		require.NoError(t, win.Lock(ctx, window.Shared, 0))
		var got, fetched [3]uint64
		var one uint64
		for range 2 {
			require.NoError(t, errors.Join(win.Get(got[:], 0, 0), win.GetAccumulate(window.NoOp, nil, fetched[:], 0, 0), win.Flush(ctx, 0)))
			require.Equal(t, [3]uint64{1, 2, 3}, got)
			require.Equal(t, got, fetched)
			for _, err := range []error{
				win.Put([]uint64{9}, 0, 0), win.PutNotify(nil, 0, 0, 1), win.Accumulate(window.Sum, []uint64{9}, 0, 0),
				win.AccumulateEach(window.Sum, []uint64{9, 9}, 0, []int{0, 1}), win.FetchAndOp(window.Sum, 1, &one, 0, 0),
				win.CompareAndSwap(1, 9, &one, 0, 0),
			} {
				require.ErrorIs(t, err, window.ErrReadOnly)
			}
		}
		require.NoError(t, errors.Join(win.Unlock(ctx, 0), win.Close(), w.Close()))
	})
}

func TestSeatsPerSession(t *testing.T) {
	limited(t, &window.Server{Limits: window.Limits{SeatsPerSession: 1}}, func(ctx context.Context, address string, _ *window.Window[uint64]) {
		w, win := attached(t, ctx, address, "words")
		_, err := window.Attach[uint64](ctx, w, "words")
		require.ErrorIs(t, err, window.ErrNoSeat)
		require.ErrorContains(t, err, "Limits.SeatsPerSession")
		read, err := window.Attach[uint64](ctx, w, "read")
		require.NoError(t, err)
		require.NoError(t, errors.Join(win.Close(), read.Close(), w.Close()))
	})
}

func TestLimitsRefused(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[uint64](ctx, w, 1, window.Seats(1))
		require.NoError(t, err)
		for _, limits := range []window.Limits{{Sessions: -1}, {SeatsPerSession: -1}, {IdleTime: time.Second}} {
			require.ErrorIs(t, (&window.Server{Limits: limits}).Serve(ctx, l, win.As("words")), window.ErrArgument)
		}
		return win.Close()
	}))
}
