package proof_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
)

func TestNewKeysDifferAndSurviveTheirTextForm(t *testing.T) {
	one, other := proof.NewKey(), proof.NewKey()
	require.Len(t, one, 32)
	require.NotEqual(t, one, other)
	again, err := proof.ParseKey(hex.EncodeToString(one))
	require.NoError(t, err)
	require.Equal(t, one, again)
}

func TestParseKey(t *testing.T) {
	for _, c := range []struct {
		name, text string
		ok         bool
	}{
		{"shortest", strings.Repeat("0a", 16), true},
		{"longest", strings.Repeat("0a", 512), true},
		{"capitals", strings.Repeat("AB", 16), true},
		{"nothing", "", false},
		{"too short", strings.Repeat("0a", 15), false},
		{"too long", strings.Repeat("0a", 513), false},
		{"odd", strings.Repeat("0a", 16) + "0", false},
		{"other letters", strings.Repeat("xy", 16), false},
		{"prefix", "0x" + strings.Repeat("0a", 16), false},
		{"line end", strings.Repeat("0a", 16) + "\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			key, err := proof.ParseKey(c.text)
			if c.ok {
				require.NoError(t, err)
				require.Equal(t, strings.ToLower(c.text), hex.EncodeToString(key))
				return
			}
			require.ErrorIs(t, err, proof.ErrKeyForm)
		})
	}
}

func TestErrorsDoNotShowTheKey(t *testing.T) {
	secret := strings.Repeat("5eC2e7", 8)
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte(secret+"?"), 0o600))
	_, err := proof.ReadKeyFile(path)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "5eC2")
	require.NotContains(t, err.Error(), "?")
}

func TestReadKeyFile(t *testing.T) {
	text := strings.Repeat("0a", 32)
	for _, c := range []struct {
		name, content string
		mode          os.FileMode
		refused       error
	}{
		{"plain", text, 0o600, nil},
		{"read only", text, 0o400, nil},
		{"line end", text + "\n", 0o600, nil},
		{"line end of another system", text + "\r\n", 0o600, nil},
		{"others may read", text, 0o604, proof.ErrKeyFile},
		{"group may write", text, 0o620, proof.ErrKeyFile},
		{"empty", "", 0o600, proof.ErrKeyForm},
		{"only a line end", "\n", 0o600, proof.ErrKeyForm},
		{"too short", text[:30], 0o600, proof.ErrKeyForm},
		{"two keys", text + "\n" + text, 0o600, proof.ErrKeyForm},
		{"bytes", strings.Repeat("\x80", 32), 0o600, proof.ErrKeyForm},
		{"a large file", strings.Repeat("0a", 1<<16), 0o600, proof.ErrKeyFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			require.NoError(t, os.WriteFile(path, []byte(c.content), c.mode))
			// The file must have the mode whatever the umask.
			require.NoError(t, os.Chmod(path, c.mode))
			key, err := proof.ReadKeyFile(path)
			if c.refused == nil {
				require.NoError(t, err)
				require.Equal(t, text, hex.EncodeToString(key))
				return
			}
			require.ErrorIs(t, err, c.refused)
			require.ErrorIs(t, err, proof.ErrKeyFile)
			require.ErrorContains(t, err, path)
			require.Nil(t, key)
		})
	}
}

func TestKeyFileMustBeAFile(t *testing.T) {
	dir := t.TempDir()
	_, err := proof.ReadKeyFile(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = proof.ReadKeyFile(dir)
	require.ErrorIs(t, err, proof.ErrKeyFile)

	// No process writes to this pipe.
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err = proof.ReadKeyFile(pipe)
	require.ErrorIs(t, err, proof.ErrKeyFile)
}

// A key file belongs to this user, and no other can read it. Or it belongs to root, and its group may read it.
func TestKeyFileOwners(t *testing.T) {
	for _, c := range []struct {
		owner string
		mode  os.FileMode
		says  string
	}{
		{"root", 0o600, ""},
		{"root", 0o440, ""},
		{"root", 0o640, ""},
		{"root", 0o644, "has mode 0644, and a file of root must give its group read permission at most"},
		{"root", 0o660, "must give its group read permission at most"},
		{"another", 0o600, "belongs to user 1234, must belong to user"},
		{"another", 0o644, "belongs to user 1234, must belong to user"},
	} {
		t.Run(fmt.Sprintf("%s %#o", c.owner, c.mode), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "key")
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("0a", 32)), 0o600))
			require.NoError(t, os.Chmod(path, c.mode))
			if err := os.Chown(path, map[string]int{"root": 0, "another": 1234}[c.owner], -1); err != nil {
				t.Skip("skipped: only root can give a file away:", err)
			}
			_, err := proof.ReadKeyFile(path)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, proof.ErrKeyFile)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// An error about a key file names the kind of file, and names the package once.
func TestKeyFileErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := proof.ReadKeyFile(dir)
	require.EqualError(t, err, "proof: key file rejected: "+dir+" is a directory, must be a regular file")
	path := filepath.Join(dir, "key")
	require.NoError(t, os.WriteFile(path, []byte("0a"), 0o600))
	_, err = proof.ReadKeyFile(path)
	require.ErrorIs(t, err, proof.ErrKeyForm)
	require.Equal(t, 1, strings.Count(err.Error(), "proof: "), "%v", err)
}
