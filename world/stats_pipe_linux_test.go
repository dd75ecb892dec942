package world_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// A table goes to who reads a named pipe.
func TestStatsToPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	t.Setenv("RMA_STATS", name)
	read := make(chan []byte, 1)
	go func() {
		text, err := os.ReadFile(name)
		if err != nil {
			text = []byte(err.Error())
		}
		read <- text
	}()
	require.NoError(t, world.Run(t.Context(), 1, func(context.Context, *world.World) error { return nil }))
	require.Contains(t, string(<-read), "collective calls")
}
