package job_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// A table that cannot be written is an error before anything runs.
func TestStatsNowhere(t *testing.T) {
	t.Setenv("RMA_STATS", filepath.Join(t.TempDir(), "none", "stats"))
	for _, options := range [][]world.Option{nil, jobtest.OptionsApart(), {world.WithDevice("tcp")}} {
		ran := false
		err := world.Run(t.Context(), 2, func(context.Context, *world.World) error {
			ran = true
			return nil
		}, options...)
		require.ErrorIs(t, err, world.ErrEnvironment)
		require.ErrorContains(t, err, "RMA_STATS: open ")
		require.False(t, ran)
	}
}

// A link that somebody has put where a file of this user's is expected is not followed, whatever asks for the file.
func TestFilesBehindLinks(t *testing.T) {
	for _, variable := range []string{"RMA_STATS", "RMA_TRACE"} {
		t.Run(variable, func(t *testing.T) {
			dir := t.TempDir()
			link, victim := filepath.Join(dir, "link"), filepath.Join(dir, "victim")
			require.NoError(t, os.Symlink(victim, link))
			t.Setenv(variable, link)
			err := world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }, world.WithDevice("tcp"))
			require.ErrorIs(t, err, world.ErrEnvironment)
			require.ErrorContains(t, err, variable)
			require.ErrorContains(t, err, link+": is a symbolic link")
			require.Equal(t, variable == "RMA_STATS", strings.HasSuffix(err.Error(), "or - for standard error"), "%v", err)
			require.NoFileExists(t, victim)
		})
	}
}

// A file that is there keeps its mode: its user has chosen it.
func TestFilesKeepTheirMode(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chmod(file, 0o644))
	t.Setenv("RMA_STATS", file)
	require.NoError(t, world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode())
	require.NotZero(t, info.Size())
}

// What ranks write to files that they make is for their user alone.
func TestFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	for _, variable := range []string{"RMA_STATS", "RMA_TRACE"} {
		t.Setenv(variable, filepath.Join(dir, variable))
	}
	require.NoError(t, world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }, world.WithDevice("tcp")))
	for _, variable := range []string{"RMA_STATS", "RMA_TRACE"} {
		info, err := os.Stat(filepath.Join(dir, variable))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode(), variable)
		require.NotZero(t, info.Size(), variable)
	}
}
