package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// late are calls of a goroutine that goes on when the World is closed.
var late = []struct {
	name string
	call func(ctx context.Context, win *window.Window[int64]) error
}{
	{"Put", func(_ context.Context, win *window.Window[int64]) error { return win.Put([]int64{1}, 0, 0) }},
	{"Get", func(_ context.Context, win *window.Window[int64]) error { return win.Get(make([]int64, 100), 0, 0) }},
	{"Accumulate", func(_ context.Context, win *window.Window[int64]) error {
		return win.Accumulate(window.Sum, []int64{1}, 0, 0)
	}},
	{"FetchAndOp", func(_ context.Context, win *window.Window[int64]) error {
		return win.FetchAndOp(window.Sum, 1, new(int64), 0, 0)
	}},
	{"CompareAndSwap", func(_ context.Context, win *window.Window[int64]) error {
		return win.CompareAndSwap(0, 1, new(int64), 0, 0)
	}},
	{"PutNotify", func(_ context.Context, win *window.Window[int64]) error {
		return win.PutNotify([]int64{1}, 0, 0, 0)
	}},
	{"TestNotify", func(_ context.Context, win *window.Window[int64]) error { _, err := win.TestNotify(0, 1); return err }},
	{"WaitNotify", func(ctx context.Context, win *window.Window[int64]) error { return win.WaitNotify(ctx, 0, 1) }},
	{"Flush", func(ctx context.Context, win *window.Window[int64]) error { return win.Flush(ctx, 0) }},
	{"FlushAll", func(ctx context.Context, win *window.Window[int64]) error { return win.FlushAll(ctx) }},
	{"FlushLocal", func(ctx context.Context, win *window.Window[int64]) error { return win.FlushLocal(ctx, 0) }},
	{"RFlush", func(_ context.Context, win *window.Window[int64]) error { _, err := win.RFlush(0); return err }},
	{"Sync", func(_ context.Context, win *window.Window[int64]) error { return win.Sync() }},
	{"Fence", func(ctx context.Context, win *window.Window[int64]) error { return win.Fence(ctx) }},
	{"Start", func(ctx context.Context, win *window.Window[int64]) error { return win.Start(ctx, window.Group{}) }},
	{"Complete", func(ctx context.Context, win *window.Window[int64]) error { return win.Complete(ctx) }},
	{"Post", func(ctx context.Context, win *window.Window[int64]) error { return win.Post(ctx, window.Group{}) }},
	{"Wait", func(ctx context.Context, win *window.Window[int64]) error { return win.Wait(ctx) }},
	{"Test", func(_ context.Context, win *window.Window[int64]) error { _, err := win.Test(); return err }},
	{"Lock", func(ctx context.Context, win *window.Window[int64]) error { return win.Lock(ctx, window.Shared, 0) }},
	{"Unlock", func(ctx context.Context, win *window.Window[int64]) error { return win.Unlock(ctx, 0) }},
	{"LockAll", func(ctx context.Context, win *window.Window[int64]) error { return win.LockAll(ctx) }},
	{"UnlockAll", func(ctx context.Context, win *window.Window[int64]) error { return win.UnlockAll(ctx) }},
	{"View", func(_ context.Context, win *window.Window[int64]) error { return made(window.View[uint64](win)) }},
	{"Close", func(_ context.Context, win *window.Window[int64]) error { return win.Close() }},
}

var errGivenUp = errors.New("body gives up")

// TestAbandoned closes the World with windows in epochs, and accumulates held back. The
// windows are closed then: a late call is refused, it does not run into memory that is
// gone.
func TestAbandoned(t *testing.T) {
	for _, ending := range []error{nil, errGivenUp} {
		for _, ranks := range []int{1, 2} {
			for _, open := range []struct {
				name string
				call func(ctx context.Context, win *window.Window[int64]) error
			}{
				{"LockAll", func(ctx context.Context, win *window.Window[int64]) error { return win.LockAll(ctx) }},
				{"Fence", func(ctx context.Context, win *window.Window[int64]) error { return win.Fence(ctx) }},
				{"Lock", func(ctx context.Context, win *window.Window[int64]) error { return win.Lock(ctx, window.Shared, 0) }},
			} {
				wins := make([]*window.Window[int64], ranks)
				err := world.Run(t.Context(), ranks, scripted(func(s *script) {
					win := allocate[int64](s, farCount)
					wins[s.World.Rank()] = win
					s.OK(s.World.Barrier(s.Ctx))
					s.OK(open.call(s.Ctx, win))
					for range 5 {
						s.OK(win.Accumulate(window.Sum, []int64{1}, 0, 0))
					}
					s.OK(ending)
				}))
				require.ErrorIs(t, err, ending)
				for _, win := range wins {
					for _, l := range late {
						require.ErrorIs(t, l.call(t.Context(), win), epoch.ErrClosed, "%s after %s on %d ranks", l.name, open.name, ranks)
					}
				}
			}
		}
	}
}

// TestAbandonedMeanwhile closes the World while goroutines wait in calls for what will
// never come.
func TestAbandonedMeanwhile(t *testing.T) {
	for _, ending := range []error{nil, errGivenUp} {
		var ended []chan error
		err := world.Run(t.Context(), 1, scripted(func(s *script) {
			wait := func(prepare func(win *window.Window[int64]), call func(win *window.Window[int64]) error) {
				win, result, begun := allocate[int64](s, 4), make(chan error, 1), make(chan bool)
				prepare(win)
				ended = append(ended, result)
				go func() {
					close(begun)
					result <- call(win)
				}()
				<-begun
			}
			wait(func(*window.Window[int64]) {}, func(win *window.Window[int64]) error { return win.WaitNotify(s.Ctx, 0, 1) })
			self, err := epoch.NewGroup(1, 0)
			s.OK(err)
			wait(func(*window.Window[int64]) {}, func(win *window.Window[int64]) error { return win.Start(s.Ctx, self) })
			wait(func(win *window.Window[int64]) { s.OK(win.Post(s.Ctx, self)) },
				func(win *window.Window[int64]) error { return win.Wait(s.Ctx) })
			s.OK(ending)
		}))
		require.ErrorIs(t, err, ending)
		for _, result := range ended {
			var failed *world.PeerError
			err := <-result
			require.True(t, errors.Is(err, epoch.ErrClosed) || ending != nil && errors.As(err, &failed), "error is %v", err)
		}
	}
}
