package job

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A variable that is one of the library's but for a letter is an error of what begins a job; others are not.
func TestMisspeltVariables(t *testing.T) {
	for name, want := range map[string]string{
		"RMA_DEVISE": "RMA_DEVICE", "RMA_DEVCE": "RMA_DEVICE", "RMA_DEBUGG": "RMA_DEBUG", "RMA_TARCE": "RMA_TRACE", "RMA_STAT": "RMA_STATS", "RMA_RNK": "RMA_RANK",
		"RMA_KEYFILE": "RMA_KEY_FILE",
	} {
		err := checkSpelling([]string{"HOME=/", name + "=1"})
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, "nothing reads "+name+": is "+want+" meant?")
	}
	// What Kubernetes sets for a service of that name, and what is another program's.
	require.NoError(t, checkSpelling([]string{"RMA_PORT=tcp://10.0.0.1:7000", "RMA_SERVICE_HOST=10.0.0.1", "RMA_JOB_PORT=1", "XRMA_DEVISE=1", "RMA_X=1", "RMA_"}))
	for _, known := range variables {
		require.NoError(t, checkSpelling([]string{known + "=1"}))
	}
	t.Setenv("RMA_DEVISE", "tcp")
	_, err := Init(t.Context())
	require.ErrorIs(t, err, ErrEnvironment)
	require.ErrorContains(t, err, "RMA_DEVISE")
	require.ErrorContains(t, Run(t.Context(), 1, func(context.Context, *World) error { return nil }), "RMA_DEVISE")
	t.Setenv("RMA_ROOT", "127.0.0.1:1")
	_, err = Init(t.Context())
	require.ErrorContains(t, err, "RMA_DEVISE")
}

// What the library reads is known: every name of a variable in its source, but for what its own tests and bench read.
func TestKnownVariables(t *testing.T) {
	found := map[string]bool{}
	for _, root := range []string{"..", "../../world", "../../verbs", "../../window", "../../scheduler", "../../aggregate", "../../regcache", "../../epoch", "../../cmd"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			switch name := entry.Name(); {
			case entry.IsDir() && slices.Contains([]string{"jobtest", "launchtest", "nettest", "testsize", "tty"}, name):
				return fs.SkipDir
			case path == "../job/environment.go" || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, name := range regexp.MustCompile(`"(RMA_[A-Z_]+)"`).FindAllSubmatch(text, -1) {
				found[string(name[1])] = true
			}
			return err
		}))
	}
	for _, name := range variables {
		require.True(t, found[name], "%s is known, and nothing reads it", name)
		delete(found, name)
	}
	require.Empty(t, found)
}
