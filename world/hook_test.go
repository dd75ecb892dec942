package world_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// An eventKind is what a hooked counts events by.
type eventKind struct {
	call string
	// ofWindow is set for an event that has the number of a window.
	ofWindow bool
}

// hooked counts the events of a hook.
type hooked struct {
	mu     sync.Mutex
	events map[eventKind]int
}

func (h *hooked) option() world.Option {
	h.events = make(map[eventKind]int)
	return world.WithHook(func(e *world.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events[eventKind{e.Call, e.Window != 0}]++
	})
}

// Each Close has an event, also one that its context ends, and one after it. An event of a window has its number.
func TestHookOfClose(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	cut := make(chan struct{})
	var h hooked
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 0 {
			defer close(cut)
		}
		var failed *window.CreateError
		if _, err := window.Allocate[int](ctx, w, -w.Rank()); !errors.As(err, &failed) {
			return fmt.Errorf("a window of -1 elements: %w", err)
		}
		win, err := window.Allocate[int](ctx, w, 1)
		if err != nil {
			return err
		}
		if err := errors.Join(win.Fence(ctx, window.NoSucceed), win.Close()); err != nil {
			return err
		}
		if err := win.Close(); !errors.Is(err, window.ErrClosed) {
			return fmt.Errorf("a second Close of a window: %w", err)
		}
		if w.Rank() == 0 {
			if err := w.CloseContext(over); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a Close that rank 1 has not called: %w", err)
			}
			return nil
		}
		<-cut
		return errors.Join(w.Close(), w.Close())
	}, h.option()))
	require.Equal(t, map[eventKind]int{
		{"Allocate", false}: 2, {"Allocate", true}: 2, {"Fence", true}: 2, {"Close", true}: 4, {"Close", false}: 3,
	}, h.events)
}

// A server ends its sessions by calls that are not the program's: the hook of its Listener gets none. That of a client gets
// the client's calls.
func TestHookOfSessions(t *testing.T) {
	var server, client hooked
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey(), server.option())
	require.NoError(t, err)
	dial := func(options ...world.Option) (*world.World, error) {
		return world.Dial(t.Context(), l.Addr().String(), append(options, world.WithoutKey())...)
	}
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int](ctx, w, 1, window.Seats(1))
		if err != nil {
			return err
		}
		serving, stop := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() {
			served <- (&window.Server{Limits: window.Limits{Sessions: 1}}).Serve(serving, l, win.As("a"))
		}()
		c, err := dial(client.option())
		require.NoError(t, err)
		there, err := window.Attach[int](ctx, c, "a")
		require.NoError(t, err)
		_, err = window.Attach[int](ctx, c, "nothing")
		require.ErrorIs(t, err, window.ErrNotServed)
		_, err = dial()
		require.ErrorIs(t, err, world.ErrEvicted)
		err = errors.Join(there.Close(), c.Close())
		stop()
		return errors.Join(err, <-served, l.Close(), win.Close())
	}))
	require.Empty(t, server.events)
	require.Equal(t, map[eventKind]int{
		{"Attach", true}: 1, {"Attach", false}: 1, {"Close", true}: 1, {"Close", false}: 1,
	}, client.events)
}

// Nor does the hook get the end of a session that no call has accepted.
func TestHookOfNoSession(t *testing.T) {
	var server hooked
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey(), world.WithLogger(nil), server.option())
	require.NoError(t, err)
	dialing, leave := context.WithCancel(t.Context())
	dialed := make(chan error, 1)
	go func() {
		_, err := world.Dial(dialing, l.Addr().String(), world.WithoutKey())
		dialed <- err
	}()
	// The server listens to the client once the session has a World.
	await.Parked(t, "job.(*Session).listen", 1)
	leave()
	require.ErrorIs(t, await.Receive(t, "Dial to end", dialed), context.Canceled)
	require.NoError(t, l.Close())
	require.Empty(t, server.events)
}
