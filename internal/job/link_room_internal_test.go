package job

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// stubborn serves nothing until it is released, as a rank that was stopped.
type stubborn chan struct{}

func (s stubborn) Serve(*Link, *Message, []byte) error { <-s; return nil }

// Where there is no room for more messages to a rank, calls wait as long as their context
// lasts, and may be made again.
func TestNoRoom(t *testing.T) {
	service := make(stubborn)
	release := func() { close(service) }
	defer func() { release() }()
	runApart(t, 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			defer w.Serve(7, service)()
			return errors.Join(w.Barrier(ctx), w.Barrier(ctx))
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		ended, end := context.WithCancel(ctx)
		end()
		l, err := w.Link(1)
		for err == nil {
			err = l.TellWithin(ended, &Message{Kind: FirstKind, Service: 7}, nil)
		}
		if !errors.Is(err, context.Canceled) {
			return err
		}
		for name, call := range map[string]func(ctx context.Context) error{"Flush": func(ctx context.Context) error { return l.Flush(ctx) }, "Barrier": w.Barrier} {
			if err := call(ended); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		release()
		release = func() {}
		return errors.Join(l.Flush(ctx), w.Barrier(ctx))
	})
}

// Who waits for room no longer than a context lasts is told why that has ended.
func TestNoRoomWhy(t *testing.T) {
	l, err := quiet(t)[0].Link(1)
	require.NoError(t, err)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for err == nil {
		err = l.TellWithin(ctx, &Message{Kind: FirstKind, Service: 7}, make([]byte, l.MaxPayload()))
	}
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
}
