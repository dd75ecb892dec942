package launchtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Slurm authenticates its clients by munge if there is a munge socket, and otherwise not at all.
func TestConfigure(t *testing.T) {
	for socket, want := range map[string][]string{
		"":                {"AuthType=auth/none\nCredType=cred/none\nStateSaveLocation="},
		"/x/munge.socket": {"AuthType=auth/munge\nAuthInfo=socket=/x/munge.socket\nCredType=cred/munge\nStateSaveLocation="},
	} {
		path, err := configure(t.TempDir(), socket, 1, []int{2, 3})
		require.NoError(t, err)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, lines := range append(want, "NodeName=n1 ", "NodeName=n2 ") {
			require.Contains(t, string(text), lines)
		}
	}
}

// Only the user can read a munge key, and each key is a new one.
func TestMungeKey(t *testing.T) {
	var keys [2][]byte
	for i := range keys {
		dir, err := directory()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
		_, err = munge("munged", dir)
		require.NoError(t, err)
		file := filepath.Join(dir, "munge.key")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		keys[i], err = os.ReadFile(file)
		require.NoError(t, err)
		require.Len(t, keys[i], mungeKeyBytes)
	}
	require.NotEqual(t, keys[0], keys[1])
}
