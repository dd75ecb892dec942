package ownfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Open makes a file that only this user can access, whatever the umask. An existing file is written to and keeps its
// mode.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for range 2 {
		file, err := Open(path, os.O_WRONLY|os.O_APPEND)
		require.NoError(t, err)
		_, err = file.WriteString("line\n")
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "line\nline\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
}

// A file that another user could have put there is rejected, and neither made nor changed.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	victim, missing := filepath.Join(dir, "victim"), filepath.Join(dir, "missing")
	require.NoError(t, os.WriteFile(victim, []byte("precious"), 0o600))
	for name, test := range map[string]struct {
		put  func(path string) error
		says string
	}{
		"a link to a file":    {func(path string) error { return os.Symlink(victim, path) }, "is a symbolic link"},
		"a link to nothing":   {func(path string) error { return os.Symlink(missing, path) }, "is a symbolic link"},
		"a link to itself":    {func(path string) error { return os.Symlink(path, path) }, "is a symbolic link"},
		"another name":        {func(path string) error { return os.Link(victim, path) }, "has another name"},
		"another user's file": {func(path string) error { return given(path, os.WriteFile(path, nil, 0o666)) }, "belongs to user 1,"},
		"another user's pipe": {func(path string) error { return given(path, syscall.Mkfifo(path, 0o666)) }, "belongs to user 1,"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "file")
			defer os.Remove(path)
			err := test.put(path)
			if os.Geteuid() != 0 && os.IsPermission(err) {
				t.Skipf("skipped: only root gives files away: %v", err)
			}
			require.NoError(t, err)
			file, err := Open(path, os.O_WRONLY|os.O_APPEND|os.O_TRUNC)
			require.ErrorContains(t, err, "open "+path+": "+test.says)
			require.Nil(t, file)
		})
	}
	text, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))
	require.NoFileExists(t, missing)
}

// Open of a pipe succeeds only if a process reads the pipe, and never waits.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err := Open(path, os.O_WRONLY|os.O_APPEND)
	require.EqualError(t, err, "open "+path+": is a named pipe that no process reads: start its reader first, or name a file")
	reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	file, err := Open(path, os.O_WRONLY|os.O_APPEND)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.NoError(t, reader.Close())
}

func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	path := filepath.Join(file, "none")
	_, err := Open(path, os.O_WRONLY)
	require.EqualError(t, err, "open "+path+": not a directory")
	require.ErrorIs(t, err, syscall.ENOTDIR)
}

// given gives a file to another user.
func given(path string, err error) error {
	if err != nil {
		return err
	}
	return os.Chown(path, 1, -1)
}

// A device is opened whoever owns it.
func TestDevice(t *testing.T) {
	file, err := Open(os.DevNull, os.O_WRONLY)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
