package window_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A Window that no call has made, and none at all, are errors of calls, and methods without one say so when they panic.
func TestNoWindow(t *testing.T) {
	var none *window.Window[int64]
	ctx, buffer, result := t.Context(), []int64{1}, make([]int64, 1)
	listener, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	for _, win := range []*window.Window[int64]{none, new(window.Window[int64])} {
		request := func(_ window.Request, err error) error { return err }
		decided := func(_ bool, err error) error { return err }
		for name, call := range map[string]func(ctx context.Context) error{
			"Fence": func(ctx context.Context) error { return win.Fence(ctx) }, "Close": func(context.Context) error { return win.Close() },
			"CloseContext": win.CloseContext, "Start": func(ctx context.Context) error { return win.Start(ctx, window.Group{}) },
			"Complete": win.Complete, "Post": func(ctx context.Context) error { return win.Post(ctx, window.Group{}) },
			"Wait": win.Wait, "Test": func(context.Context) error { return decided(win.Test()) },
			"Lock":    func(ctx context.Context) error { return win.Lock(ctx, window.Shared, 0) },
			"LockNow": func(ctx context.Context) error { return win.LockNow(ctx, window.Shared, 0) },
			"Unlock":  func(ctx context.Context) error { return win.Unlock(ctx, 0) },
			"LockAll": func(ctx context.Context) error { return win.LockAll(ctx) }, "UnlockAll": win.UnlockAll,
			"Flush":         func(ctx context.Context) error { return win.Flush(ctx, 0) },
			"FlushLocal":    func(ctx context.Context) error { return win.FlushLocal(ctx, 0) },
			"FlushAll":      win.FlushAll,
			"FlushLocalAll": win.FlushLocalAll,
			"RFlush":        func(context.Context) error { return request(win.RFlush(0)) },
			"Sync":          func(context.Context) error { return win.Sync() },
			"WaitNotify":    func(ctx context.Context) error { return win.WaitNotify(ctx, 0, 1) },
			"TestNotify":    func(context.Context) error { return decided(win.TestNotify(0, 1)) },
			"Group": func(context.Context) error {
				_, err := win.Group(0)
				return err
			},
			"View": func(context.Context) error {
				_, err := window.View[byte](win)
				return err
			},
			"PutNotify":      func(context.Context) error { return win.PutNotify(buffer, 0, 0, 0) },
			"Accumulate":     func(context.Context) error { return win.Accumulate(window.Sum, buffer, 0, 0) },
			"GetAccumulate":  func(context.Context) error { return win.GetAccumulate(window.Sum, buffer, result, 0, 0) },
			"FetchAndOp":     func(context.Context) error { return win.FetchAndOp(window.Sum, 1, &result[0], 0, 0) },
			"CompareAndSwap": func(context.Context) error { return win.CompareAndSwap(1, 2, &result[0], 0, 0) },
			"AccumulateEach": func(context.Context) error { return win.AccumulateEach(window.Sum, buffer, 0, []int{0}) },
			"PutLayout": func(context.Context) error {
				return win.PutLayout(buffer, window.Contiguous(1), 0, 0, window.Contiguous(1))
			},
			"GetLayout": func(context.Context) error {
				return win.GetLayout(result, window.Contiguous(1), 0, 0, window.Contiguous(1))
			},
			"AccumulateLayout": func(context.Context) error {
				return win.AccumulateLayout(window.Sum, buffer, window.Contiguous(1), 0, 0, window.Contiguous(1))
			},
			"RPut":           func(context.Context) error { return request(win.RPut(buffer, 0, 0)) },
			"RGet":           func(context.Context) error { return request(win.RGet(result, 0, 0)) },
			"RAccumulate":    func(context.Context) error { return request(win.RAccumulate(window.Sum, buffer, 0, 0)) },
			"RGetAccumulate": func(context.Context) error { return request(win.RGetAccumulate(window.Sum, buffer, result, 0, 0)) },
		} {
			err := call(ctx)
			require.ErrorIs(t, err, window.ErrArgument, name)
			require.ErrorContains(t, err, "nil Window", name)
		}
		for name, method := range map[string]func(){
			"Local": func() { win.Local() }, "World": func() { win.World() }, "Stats": func() { win.Stats() },
		} {
			require.PanicsWithValue(t, "window: "+name+": invalid argument: nil Window, or one that no call of package window has made", method)
		}
		require.EqualError(t, window.Serve(ctx, listener, win.As("a")), `window: Serve: "a": invalid argument: no window: a Served is made by As`)
		require.Zero(t, win.Len(0))
		_, mapped := win.Mapped(0)
		require.False(t, mapped)
	}
	zero := new(window.Window[int64])
	require.ErrorIs(t, zero.Put(buffer, 0, 0), window.ErrArgument)
	require.ErrorIs(t, zero.Get(result, 0, 0), window.ErrArgument)
	require.Panics(t, func() { _ = none.Put(buffer, 0, 0) })
	require.Panics(t, func() { _ = none.Get(result, 0, 0) })
	require.NoError(t, new(window.Request).Wait(ctx))
}
