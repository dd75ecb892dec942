package tty

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Output to a file, to the null device or to a pipe does not appear on a terminal, unless a launcher has named the
// pipe. The tests of rmarun cover terminals.
func TestShows(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	text, err := os.Create(filepath.Join(t.TempDir(), "text"))
	require.NoError(t, err)
	defer text.Close()
	from, pipe, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	for _, f := range []*os.File{null, text, pipe} {
		require.False(t, Shows(f), f.Name())
	}
	name, value, _ := strings.Cut(Through(pipe), "=")
	t.Setenv(name, value)
	require.True(t, Shows(pipe))
	require.False(t, Shows(null))
	require.False(t, Shows(text))
	require.NoError(t, pipe.Close())
	require.False(t, Shows(pipe))
	t.Setenv(name, "")
	require.False(t, Shows(pipe))
}
