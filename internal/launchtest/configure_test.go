package launchtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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

// Where only a part of what Slurm needs is there, or not all rights, it may fail to start.
func TestExcuse(t *testing.T) {
	there := func(string) (string, error) { return "/usr/sbin/munged", nil }
	missing := func(string) (string, error) { return "", exec.ErrNotFound }
	able, unable := func() error { return nil }, func() error { return syscall.EPERM }
	for _, c := range []struct {
		user    int
		find    func(string) (string, error)
		becomes func() error
		says    string
	}{
		{0, there, able, ""},
		{1000, there, able, "ordinary user"},
		{0, missing, able, "munge is not installed"},
		{0, there, unable, "root cannot start it as user 65534 here: operation not permitted"},
	} {
		why := excuse(c.user, c.find, c.becomes)
		require.Contains(t, why, c.says)
		require.Equal(t, c.says == "", why == "", why)
	}
}
