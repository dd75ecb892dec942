package window_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Of a job that tells where its rank 0 serves a window, rank 1 is the client that ends, rank 2
// another. They serve and attach beside the job, of which they use nothing else.

var (
	servedKilled  = jobtest.Register("client killed", func(ctx context.Context, w *world.World) error { return servedEnds(ctx, w, false) })
	servedStopped = jobtest.Register("client stopped", func(ctx context.Context, w *world.World) error { return servedEnds(ctx, w, true) })
	serverKilled  = jobtest.Register("server killed", serverEnds)
)

// soonDead are the options of both sides.
var soonDead = world.WithPeerTimeout(silence)

// whereServed listens at rank 0, and tells all where.
func whereServed(ctx context.Context, w *world.World) (l *world.Listener, address string, err error) {
	text := make([]byte, 64)
	if w.Rank() == 0 {
		if l, err = world.Listen(ctx, "127.0.0.1:0", soonDead, world.WithoutKey()); err != nil {
			return nil, "", err
		}
		copy(text, l.Addr().String())
	}
	err = world.Broadcast(ctx, w, 0, text)
	return l, string(bytes.TrimRight(text, "\x00")), err
}

// serveAlone serves a window in a World of this process alone, while body runs.
func serveAlone(ctx context.Context, l *world.Listener, body func(win *window.Window[uint64]) error) error {
	return world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[uint64](ctx, w, 4, window.Seats(2))
		if err != nil {
			return err
		}
		served := make(chan error)
		go func() { served <- window.Serve(ctx, l, win.As("words")) }()
		err = body(win)
		return errors.Join(err, l.Close(), <-served, win.Close())
	})
}

func attachTo(ctx context.Context, address string) (*world.World, *window.Window[uint64], error) {
	w, err := world.Dial(ctx, address, soonDead, world.WithoutKey())
	if err != nil {
		return nil, nil, err
	}
	win, err := window.Attach[uint64](ctx, w, "words")
	return w, win, err
}

// servedEnds has a client that holds the exclusive lock end, while the server and another client wait
// for it. Both get it, and what the client does that comes back later is lost.
func servedEnds(ctx context.Context, w *world.World, stops bool) error {
	l, address, err := whereServed(ctx, w)
	if err != nil {
		return err
	}
	add := func(win *window.Window[uint64]) error {
		return errors.Join(win.Lock(ctx, window.Exclusive, 0), win.Accumulate(window.Sum, []uint64{1}, 0, 1), win.Flush(ctx, 0), win.Unlock(ctx, 0))
	}
	if w.Rank() == 0 {
		return serveAlone(ctx, l, func(win *window.Window[uint64]) error {
			if err := jobtest.Hold("served"); err != nil {
				return err
			}
			if err := errors.Join(add(win), jobtest.Hold("had the lock")); err != nil {
				return err
			}
			var got [3]uint64
			err := errors.Join(win.Lock(ctx, window.Exclusive, 0), win.Get(got[:], 0, 0), win.Unlock(ctx, 0))
			if err == nil && got != [...]uint64{7, 2, 0} {
				err = fmt.Errorf("the window is %v, want that of a client that did nothing when it came back", got)
			}
			return err
		})
	}
	c, win, err := attachTo(ctx, address)
	if err != nil {
		return err
	}
	if w.Rank() == victim {
		if err := errors.Join(win.Lock(ctx, window.Exclusive, 0), win.Put([]uint64{7}, 0, 0), win.Flush(ctx, 0), jobtest.Hold("locked")); err != nil {
			return err
		}
		if !stops {
			select {}
		}
		if err := jobtest.Stop(); err != nil {
			return err
		}
		var lost *world.PeerError
		if err := errors.Join(win.Put([]uint64{1}, 0, 2), win.Unlock(ctx, 0)); !errors.As(err, &lost) || lost.Rank != 0 {
			return errors.New("the client that came back was not told")
		}
		return errors.Join(jobtest.Hold("told"), win.Close(), c.Close())
	}
	if err := jobtest.Hold("attached"); err != nil {
		return err
	}
	return errors.Join(add(win), jobtest.Hold("had it, too"), win.Close(), c.Close())
}

// othersEnd fails the test unless the bodies of all ranks but one that was killed end without an error.
func othersEnd(t *testing.T, job *jobtest.Job, killed int) {
	t.Helper()
	for rank, err := range job.Wait() {
		if rank == killed {
			require.ErrorContains(t, err, "killed")
		} else {
			require.NoError(t, err, "rank %d", rank)
		}
	}
}

func TestClientEnds(t *testing.T) {
	job := jobtest.Start(t, 3, servedKilled)
	job.Await(0, "served")
	job.Await(victim, "locked")
	job.Await(2, "attached")
	job.Release(0)
	job.Release(2)
	job.Kill(victim)
	job.Await(0, "had the lock")
	job.Await(2, "had it, too")
	job.Release(2)
	job.Release(0)
	othersEnd(t, job, victim)
}

func TestClientStops(t *testing.T) {
	jobtest.SilentPeers.Acquire(t)
	job := jobtest.Start(t, 3, servedStopped)
	job.Await(0, "served")
	job.Await(victim, "locked")
	job.Await(2, "attached")
	job.Release(victim)
	job.AwaitStop(victim)
	job.Release(0)
	job.Release(2)
	job.Await(0, "had the lock")
	job.Await(2, "had it, too")
	job.Continue(victim)
	job.Await(victim, "told")
	for rank := range 3 {
		job.Release(rank)
	}
	for rank, err := range job.Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}

// serverEnds has the server end while clients wait for a lock, and where they hold one.
func serverEnds(ctx context.Context, w *world.World) error {
	l, address, err := whereServed(ctx, w)
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		return serveAlone(ctx, l, func(*window.Window[uint64]) error { select {} })
	}
	c, win, err := attachTo(ctx, address)
	if err != nil {
		return err
	}
	kind := window.Exclusive
	if w.Rank() == 2 {
		if err := jobtest.Hold("attached"); err != nil {
			return err
		}
		kind = window.Shared
		jobtest.Signal("waits")
	}
	var lost *world.PeerError
	err = errors.Join(win.Lock(ctx, kind, 0), win.Flush(ctx, 0))
	if w.Rank() == victim {
		if err := errors.Join(err, jobtest.Hold("locked")); err != nil {
			return err
		}
		for err == nil {
			err = errors.Join(win.Put([]uint64{1}, 0, 0), win.Flush(ctx, 0))
		}
		_ = win.Unlock(ctx, 0)
	}
	if !errors.As(err, &lost) || lost.Rank != 0 {
		return errors.New("the client was not told that the server has ended")
	}
	_ = win.Unlock(ctx, 0)
	return errors.Join(win.Close(), c.Close())
}

func TestServerEnds(t *testing.T) {
	job := jobtest.Start(t, 3, serverKilled)
	job.Await(victim, "locked")
	job.Await(2, "attached")
	job.Release(2)
	job.Await(2, "waits")
	job.Release(victim)
	job.Kill(0)
	othersEnd(t, job, 0)
}
