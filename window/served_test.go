package window_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// serving runs body while rank 0 of a job of one serves a window of words under the name "words".
func serving(t *testing.T, count, seats int, body func(ctx context.Context, address string, win *window.Window[uint64]), options ...window.Option) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[uint64](ctx, w, count, append(options, window.Seats(seats))...)
		if err != nil {
			return err
		}
		served, stop := context.WithCancel(ctx)
		var serving sync.WaitGroup
		var failed error
		serving.Go(func() { failed = window.Serve(served, l, win.As("words")) })
		body(ctx, l.Addr().String(), win)
		stop()
		serving.Wait()
		return errors.Join(failed, win.Close())
	}))
}

// visit attaches to the window.
func visit(t *testing.T, ctx context.Context, address string, body func(win *window.Window[uint64]) error) {
	t.Helper()
	w, err := world.Dial(ctx, address, world.WithoutKey())
	require.NoError(t, err)
	win, err := window.Attach[uint64](ctx, w, "words")
	require.NoError(t, err)
	require.NoError(t, body(win))
	require.NoError(t, win.Close())
	require.NoError(t, w.Close())
}

func TestAttach(t *testing.T) {
	serving(t, 8, 2, func(ctx context.Context, address string, own *window.Window[uint64]) {
		visit(t, ctx, address, func(win *window.Window[uint64]) error {
			require.Equal(t, 8, win.Len(0))
			require.Zero(t, win.Len(1))
			require.NoError(t, win.Lock(ctx, window.Exclusive, 0))
			require.NoError(t, win.Put([]uint64{1, 2, 3}, 0, 2))
			require.NoError(t, win.Accumulate(window.Sum, []uint64{40}, 0, 7))
			require.NoError(t, win.Unlock(ctx, 0))
			require.Equal(t, []uint64{0, 0, 1, 2, 3, 0, 0, 40}, own.Local())
			var got [8]uint64
			require.NoError(t, win.LockAll(ctx))
			require.NoError(t, win.Get(got[:], 0, 0))
			require.NoError(t, win.Flush(ctx, 0))
			require.Equal(t, own.Local(), got[:])
			require.NoError(t, win.PutNotify([]uint64{9}, 0, 0, 3))
			require.NoError(t, win.UnlockAll(ctx))
			require.NoError(t, own.WaitNotify(ctx, 3, 1))
			require.EqualValues(t, 9, own.Local()[0])
			return nil
		})
	})
}

// A window is served or closed, whichever is sooner, and never both.
func TestServeAndClose(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		for i := range 500 {
			win, err := window.Allocate[uint64](ctx, w, 1, window.Seats(1))
			if err != nil {
				return err
			}
			// Under many names, so that Serve takes its time.
			var names []window.Served
			for k := range 100 {
				names = append(names, win.As(fmt.Sprint(k)))
			}
			served, stop := context.WithCancel(ctx)
			var serving sync.WaitGroup
			var failed error
			var begun atomic.Bool
			serving.Go(func() {
				begun.Store(true)
				failed = window.Serve(served, l, names...)
			})
			for looks := 0; looks < 10*i; {
				if begun.Load() {
					looks++
				} else {
					runtime.Gosched()
				}
			}
			err = win.Close()
			stop()
			serving.Wait()
			if err == nil {
				require.ErrorIs(t, failed, epoch.ErrClosed)
				continue
			}
			require.ErrorIs(t, err, window.ErrServed)
			require.NoError(t, failed)
			require.NoError(t, win.Close())
		}
		return nil
	}))
}

// A window with an epoch open, which is not closed for that, can be served still.
func TestServeAfterCloseRefused(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[uint64](ctx, w, 1, window.Seats(1))
		require.NoError(t, err)
		require.NoError(t, win.LockAll(ctx))
		require.ErrorIs(t, win.Close(), epoch.ErrEpochOpen)
		require.NoError(t, win.UnlockAll(ctx))
		served, stop := context.WithCancel(ctx)
		stop()
		require.NoError(t, window.Serve(served, l, win.As("words")))
		require.NoError(t, win.Close())
		require.ErrorIs(t, window.Serve(served, l, win.As("words")), epoch.ErrClosed)
		return nil
	}))
}

// Everyone adds, under locks of both kinds and without, in the process that serves and in clients.
func TestAttachedAdd(t *testing.T) {
	busy.Acquire(t)
	const clients, rounds = 4, 200
	serving(t, 3, clients, func(ctx context.Context, address string, own *window.Window[uint64]) {
		add := func(win *window.Window[uint64]) error {
			for range rounds {
				var word [1]uint64
				if err := errors.Join(win.Lock(ctx, window.Exclusive, 0), win.Get(word[:], 0, 0), win.Flush(ctx, 0)); err != nil {
					return err
				}
				word[0]++
				if err := errors.Join(win.Put(word[:], 0, 0), win.Unlock(ctx, 0),
					win.Lock(ctx, window.Shared, 0), win.Accumulate(window.Sum, []uint64{1, 2}, 0, 1), win.Unlock(ctx, 0)); err != nil {
					return err
				}
			}
			return nil
		}
		var running sync.WaitGroup
		for range clients {
			running.Go(func() { visit(t, ctx, address, add) })
		}
		require.NoError(t, add(own))
		running.Wait()
		const all = (clients + 1) * rounds
		require.Equal(t, []uint64{all, all, 2 * all}, own.Local())
	})
}

func TestAttachRefused(t *testing.T) {
	serving(t, 1, 1, func(ctx context.Context, address string, own *window.Window[uint64]) {
		w, err := world.Dial(ctx, address, world.WithoutKey())
		require.NoError(t, err)
		_, err = window.Attach[uint64](ctx, w, "nothing")
		require.ErrorIs(t, err, window.ErrNotServed)
		require.EqualError(t, err, `window: Attach "nothing": no such window is served under that name`)
		require.ErrorIs(t, own.Close(), window.ErrServed)
		_, err = window.Attach[float32](ctx, w, "words")
		require.ErrorIs(t, err, window.ErrNotServed)
		require.EqualError(t, err, `window: Attach "words": no such window of float32: its elements are of uint64`)
		_, err = window.Allocate[uint64](ctx, w, 1)
		require.ErrorIs(t, err, world.ErrNoCollectives)
		require.ErrorIs(t, w.Barrier(ctx), world.ErrNoCollectives)
		// A seat is given free and taken again.
		for range 3 {
			win, err := window.Attach[uint64](ctx, w, "words")
			require.NoError(t, err)
			_, err = window.Attach[uint64](ctx, w, "words")
			require.ErrorIs(t, err, window.ErrNoSeat)
			require.NotErrorIs(t, err, window.ErrNotServed)
			require.EqualError(t, err, `window: Attach "words": all seats are taken: there is 1 (option Seats)`)
			require.ErrorIs(t, win.Fence(ctx), window.ErrAttached)
			require.ErrorIs(t, win.WaitNotify(ctx, 0, 1), window.ErrAttached)
			group, err := win.Group(0)
			require.NoError(t, err)
			require.ErrorIs(t, win.Start(ctx, group), window.ErrAttached)
			require.ErrorIs(t, win.Post(ctx, group), window.ErrAttached)
			require.ErrorIs(t, win.Complete(ctx), window.ErrAttached)
			require.ErrorIs(t, win.Wait(ctx), window.ErrAttached)
			_, err = win.Test()
			require.ErrorIs(t, err, window.ErrAttached)
			_, err = win.TestNotify(0, 1)
			require.ErrorIs(t, err, window.ErrAttached)
			require.ErrorIs(t, win.Lock(ctx, window.Shared, 1), window.ErrAttached)
			require.NoError(t, win.Lock(ctx, window.Shared, 0))
			require.ErrorIs(t, win.Put([]uint64{1}, 0, 1), window.ErrRange)
			require.ErrorIs(t, win.Put([]uint64{1}, 1, 0), epoch.ErrNoEpoch)
			require.NoError(t, win.Unlock(ctx, 0))
			require.NoError(t, win.Close())
		}
		require.NoError(t, w.Close())
	})
}

// An Attach that was cut short takes no seat from the one that is called after it, which goes on with it.
func TestAttachCutShort(t *testing.T) {
	serving(t, 1, 1, func(ctx context.Context, address string, _ *window.Window[uint64]) {
		ended, end := context.WithCancel(ctx)
		end()
		for cut := 0; cut < 3; {
			w, err := world.Dial(ctx, address, world.WithoutKey())
			require.NoError(t, err)
			win, err := window.Attach[uint64](ended, w, "words")
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
				cut++
				win, err = window.Attach[uint64](ctx, w, "words")
				require.NoError(t, err)
			}
			require.NoError(t, win.Close())
			require.NoError(t, w.Close())
		}
	})
}

// When a Serve ends in order, every call of its clients returns that the server has left.
func TestServeEndsInOrder(t *testing.T) {
	busy.Acquire(t)
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		for range 10 {
			win, err := window.Allocate[uint64](ctx, w, 1000, window.Seats(3))
			require.NoError(t, err)
			serves, stop := context.WithCancel(ctx)
			served := make(chan error)
			go func() { served <- window.Serve(serves, l, win.As("words")) }()
			attached, ends := make(chan struct{}), make(chan error)
			for _, call := range []func(there *window.Window[uint64]) error{
				func(there *window.Window[uint64]) error {
					return errors.Join(there.UnlockAll(ctx), there.LockAll(ctx))
				},
				func(there *window.Window[uint64]) error { return there.Put(make([]uint64, 999), 0, 0) },
				func(there *window.Window[uint64]) error {
					return errors.Join(there.Get(make([]uint64, 1), 0, 999), there.Flush(ctx, 0))
				},
			} {
				go func() {
					c, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
					if err != nil {
						attached <- struct{}{}
						ends <- err
						return
					}
					there, err := window.Attach[uint64](ctx, c, "words")
					if err == nil {
						err = there.LockAll(ctx)
					}
					attached <- struct{}{}
					for err == nil {
						err = call(there)
					}
					_ = there.Close()
					if failed := c.Close(); failed != nil {
						err = failed
					}
					ends <- err
				}()
			}
			for range 3 {
				<-attached
			}
			stop()
			for range 3 {
				err := <-ends
				var lost *world.PeerError
				require.ErrorAs(t, err, &lost)
				require.Zero(t, lost.Rank)
				require.ErrorIs(t, err, world.ErrLeft)
			}
			require.NoError(t, <-served)
			require.NoError(t, win.Close())
		}
		return nil
	}))
}

// The World of a window ends while the window is served. The calls of its clients return that, and nothing touches its
// memory any more. A later client is rejected.
func TestServedWindowEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	served, attached := make(chan error, 1), make(chan struct{})
	var visiting sync.WaitGroup
	for client := range 3 {
		visiting.Go(func() {
			w, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
			if err != nil {
				t.Error(err)
				return
			}
			win, err := window.Attach[uint64](ctx, w, "words")
			attached <- struct{}{}
			for err == nil {
				// Each puts words of its own, and all add to the last: locks that are shared order no puts.
				err = errors.Join(win.Lock(ctx, window.Shared, 0), win.Put(make([]uint64, 1000), 0, 1000*client),
					win.Accumulate(window.Sum, []uint64{1}, 0, 3000), win.Unlock(ctx, 0))
			}
			var lost *world.PeerError
			if !errors.As(err, &lost) || lost.Rank != 0 {
				t.Error(err)
			}
			_ = win.Close()
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	require.NoError(t, world.Run(ctx, 1, func(runs context.Context, w *world.World) error {
		win, err := window.Allocate[uint64](runs, w, 3001, window.Seats(6))
		if err != nil {
			return err
		}
		go func() { served <- window.Serve(ctx, l, win.As("words")) }()
		for range 3 {
			<-attached
		}
		return nil
	}))
	visiting.Wait()
	w, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
	require.NoError(t, err)
	_, err = window.Attach[uint64](ctx, w, "words")
	require.ErrorIs(t, err, window.ErrNotServed)
	require.NoError(t, w.Close())
	require.NoError(t, l.Close())
	require.NoError(t, <-served)
}

// A client whose Unlock is cut short, because this process has the lock, continues it, or closes its World, which gives the
// seat and the lock free. The value is added once, or never.
func TestUnlockOfClientCutShort(t *testing.T) {
	serving(t, 1, 1, func(ctx context.Context, address string, own *window.Window[uint64]) {
		cut := func(win *window.Window[uint64]) {
			require.NoError(t, own.LockNow(ctx, window.Exclusive, 0))
			require.NoError(t, win.Lock(ctx, window.Exclusive, 0))
			require.NoError(t, win.Accumulate(window.Sum, []uint64{1}, 0, 0))
			for _, cause := range []error{nil, &world.PeerError{Rank: 0, Cause: errors.New("x")}} {
				ended, end := context.WithCancelCause(ctx)
				end(cause)
				require.ErrorIs(t, win.Unlock(ended, 0), context.Canceled)
			}
			require.ErrorIs(t, win.Close(), epoch.ErrEpochOpen)
			require.ErrorIs(t, win.Lock(ctx, window.Exclusive, 0), epoch.ErrEpochOpen)
		}
		visit(t, ctx, address, func(win *window.Window[uint64]) error {
			for round := range 3 {
				cut(win)
				require.NoError(t, own.Unlock(ctx, 0))
				require.NoError(t, win.Unlock(ctx, 0))
				require.EqualValues(t, round+1, own.Local()[0])
				require.NoError(t, own.LockNow(ctx, window.Exclusive, 0))
				require.NoError(t, own.Unlock(ctx, 0))
			}
			return nil
		})
		w, err := world.Dial(ctx, address, world.WithoutKey())
		require.NoError(t, err)
		win, err := window.Attach[uint64](ctx, w, "words")
		require.NoError(t, err)
		cut(win)
		require.NoError(t, w.Close())
		require.NoError(t, own.Unlock(ctx, 0))
		require.NoError(t, own.LockNow(ctx, window.Exclusive, 0))
		require.EqualValues(t, 3, own.Local()[0])
		require.NoError(t, own.Unlock(ctx, 0))
		visit(t, ctx, address, func(win *window.Window[uint64]) error {
			return errors.Join(win.LockNow(ctx, window.Exclusive, 0), win.Unlock(ctx, 0))
		})
	})
}
