package world_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// pipeForms are how the ranks of a job in this process find each other.
var pipeForms = map[string][]world.Option{"mapped": nil, "tcp": {world.WithDevice("tcp")}}

// The tables of all ranks go to who reads a named pipe when they begin.
func TestStatsToPipe(t *testing.T) {
	for form, options := range pipeForms {
		t.Run(form, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(name, 0o600))
			t.Setenv("RMA_STATS", name)
			// It does not wait for a writer, of whom there is none yet.
			reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			require.NoError(t, err)
			defer reader.Close()
			require.NoError(t, world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }, options...))
			text, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(string(text), "collective calls"), "%s", text)
		})
	}
}

// A named pipe that no process reads is an error before anything runs, and nothing waits for a reader.
func TestStatsToUnreadPipe(t *testing.T) {
	for form, options := range pipeForms {
		t.Run(form, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(name, 0o600))
			t.Setenv("RMA_STATS", name)
			ran := false
			err := world.Run(t.Context(), 2, func(context.Context, *world.World) error {
				ran = true
				return nil
			}, options...)
			require.ErrorIs(t, err, world.ErrEnvironment)
			require.ErrorContains(t, err, "RMA_STATS: open "+name+": is a named pipe that no process reads")
			require.False(t, ran)
		})
	}
}

// No named pipe is a trace.
func TestTraceToUnreadPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	t.Setenv("RMA_TRACE", name)
	err := world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }, world.WithDevice("tcp"))
	require.ErrorIs(t, err, world.ErrEnvironment)
	require.ErrorContains(t, err, "RMA_TRACE (or WithTrace): ")
}

// A table that a full disk does not take is an error that names the call and the variable.
func TestStatsToFullDisk(t *testing.T) {
	t.Setenv("RMA_STATS", "/dev/full")
	err := world.Run(t.Context(), 1, func(context.Context, *world.World) error { return nil })
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.EqualError(t, err, "world: rank 0: Close: RMA_STATS: write /dev/full: no space left on device")
}
