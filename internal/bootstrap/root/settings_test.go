package root

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
)

func TestFromEnvironment(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte(hex.EncodeToString(testKey)+"\n"), 0o600))
	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.WriteFile(open, []byte(hex.EncodeToString(testKey)+"\n"), 0o600))
	require.NoError(t, os.Chmod(open, 0o644))
	good := map[string]string{"RMA_ROOT": "job-0.job:7000", "RMA_RANK": "2", "RMA_SIZE": "3", "RMA_KEY_FILE": key}
	for _, c := range []struct {
		name, variable, value string
		says                  string
	}{
		{"complete", "RMA_RANK", "2", ""},
		{"first rank", "RMA_RANK", "0", ""},
		{"address", "RMA_ROOT", "10.1.2.3:1", ""},
		{"address of version 6", "RMA_ROOT", "[2001:db8::1]:65535", ""},
		{"no root", "RMA_ROOT", "", "RMA_ROOT is not set"},
		{"no rank", "RMA_RANK", "", "RMA_RANK is not set"},
		{"no size", "RMA_SIZE", "", "RMA_SIZE is not set"},
		{"no key", "RMA_KEY_FILE", "", "RMA_KEY_FILE is not set"},
		{"root without port", "RMA_ROOT", "job-0", `RMA_ROOT="job-0" is not host:port`},
		{"root without host", "RMA_ROOT", ":7000", `RMA_ROOT=":7000" has no host`},
		{"any address", "RMA_ROOT", "0.0.0.0:7000", "nobody can be called"},
		{"any address of version 6", "RMA_ROOT", "[::]:7000", "nobody can be called"},
		{"port 0", "RMA_ROOT", "job-0:0", "no port from 1 to 65535"},
		{"large port", "RMA_ROOT", "job-0:65536", "no port from 1 to 65535"},
		{"named port", "RMA_ROOT", "job-0:http", "no port from 1 to 65535"},
		{"rank beyond the last", "RMA_RANK", "3", `RMA_RANK="3", must be this rank's number, 0 to 2`},
		{"negative rank", "RMA_RANK", "-1", `RMA_RANK="-1"`},
		{"name for a rank", "RMA_RANK", "job-2", `RMA_RANK="job-2"`},
		{"no ranks", "RMA_SIZE", "0", `RMA_SIZE="0", must be the number of ranks, 1 to 65536`},
		{"too many ranks", "RMA_SIZE", "65537", `RMA_SIZE="65537"`},
		{"more than a number holds", "RMA_SIZE", "99999999999999999999", `RMA_SIZE="9999`},
		{"absent key file", "RMA_KEY_FILE", key + "x", "RMA_KEY_FILE: proof: key file: open " + key + "x"},
		{"open key file", "RMA_KEY_FILE", open, "RMA_KEY_FILE: proof: key file rejected: " + open + " has mode 0644"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range good {
				t.Setenv(name, value)
			}
			t.Setenv(c.variable, c.value)
			s, err := FromEnvironment(nil)
			if c.says != "" {
				require.ErrorIs(t, err, ErrSettings)
				require.ErrorContains(t, err, c.says)
				require.Nil(t, s)
				return
			}
			require.NoError(t, err)
			require.NoError(t, s.check())
			require.Equal(t, os.Getenv("RMA_ROOT"), s.Root)
			require.Equal(t, 3, s.Size)
			require.Equal(t, testKey, s.Key)
			// A given key takes precedence over the file.
			t.Setenv("RMA_KEY_FILE", open)
			given := []byte("a key of sixteen bytes")
			s, err = FromEnvironment(given)
			require.NoError(t, err)
			require.Equal(t, given, s.Key)
		})
	}
	t.Run("none", func(t *testing.T) {
		for name := range good {
			t.Setenv(name, "")
		}
		_, err := FromEnvironment(nil)
		require.ErrorIs(t, err, ErrNoRoot)
		// A process that serves windows has a key file, too.
		t.Setenv("RMA_KEY_FILE", key)
		_, err = FromEnvironment(nil)
		require.ErrorIs(t, err, ErrNoRoot)
	})
}

func TestSettingsOfAProgramAreChecked(t *testing.T) {
	for name, change := range map[string]func(s *Settings){
		"root":     func(s *Settings) { s.Root = "x" },
		"rank":     func(s *Settings) { s.Rank = 2 },
		"negative": func(s *Settings) { s.Rank = -1 },
		"size":     func(s *Settings) { s.Size = 0 },
		"large":    func(s *Settings) { s.Size = MaxSize + 1 },
		"no key":   func(s *Settings) { s.Key = nil },
		"silence":  func(s *Settings) { s.Silence = -1 },
		"terms":    func(s *Settings) { s.Terms = "of two\nlines" },
		"longest":  func(s *Settings) { s.Terms = Terms(strings.Repeat("x", maxTerms+1)) },
		"key":      func(s *Settings) { s.Key = s.Key[:proof.MinKey-1] },
	} {
		t.Run(name, func(t *testing.T) {
			s := rankOf("127.0.0.1:7000", 1, 2)
			change(s)
			_, err := Join(t.Context(), s, ample)
			require.ErrorIs(t, err, ErrSettings)
		})
	}
	_, err := Join(t.Context(), nil, ample)
	require.ErrorIs(t, err, ErrSettings)
	for _, patience := range []time.Duration{0, -time.Second} {
		_, err := Join(t.Context(), rankOf("127.0.0.1:7000", 1, 2), patience)
		require.ErrorIs(t, err, ErrSettings)
		require.True(t, strings.HasPrefix(err.Error(), "root: "))
	}
}
