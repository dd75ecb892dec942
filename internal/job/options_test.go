package job_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/world"
)

// A Listener keeps its key where the program overwrites its own.
func TestKeyIsCopied(t *testing.T) {
	key := proof.NewKey()
	given := bytes.Clone(key)
	l, ends := listening(t, world.WithKey(given))
	clear(given)
	w, err := world.Dial(t.Context(), l.Addr().String(), world.WithKey(given))
	if err == nil {
		_ = w.Close()
	}
	require.ErrorIs(t, err, proof.ErrKey)
	w, err = world.Dial(t.Context(), l.Addr().String(), world.WithKey(key))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, <-ends)
}

// No job is made with a key that protects nothing, or with a configuration of TLS that is nil.
func TestOptionsOfSecurity(t *testing.T) {
	body := func(context.Context, *world.World) error { return nil }
	exchange := func(_ context.Context, mine string) ([]string, error) { return []string{mine}, nil }
	for text, option := range map[string]world.Option{
		"a key of 0 bytes (WithKey)":   world.WithKey([]byte{}),
		"a key of 15 bytes (WithKey)":  world.WithKey(make([]byte, 15)),
		"a key of 513 bytes (WithKey)": world.WithKey(make([]byte, 513)),
		"nil configuration (WithTLS)":  world.WithTLS(nil),
	} {
		t.Run(text, func(t *testing.T) {
			_, ofNew := world.New(t.Context(), 0, 1, exchange, option)
			_, ofInit := world.Init(t.Context(), option)
			_, ofListen := world.Listen(t.Context(), "127.0.0.1:0", option)
			_, ofDial := world.Dial(t.Context(), "127.0.0.1:1", option)
			for _, err := range []error{world.Run(t.Context(), 2, body, option), ofNew, ofInit, ofListen, ofDial} {
				require.ErrorIs(t, err, world.ErrArgument)
				require.ErrorContains(t, err, text)
			}
		})
	}
	require.NoError(t, world.Run(t.Context(), 2, body, world.WithKey(nil), world.WithDevice("tcp")))
}
