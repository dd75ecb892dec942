package world

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A variable that is misspelt is named once in a job, those that are known are not.
func TestMisspeltVariables(t *testing.T) {
	var log bytes.Buffer
	s := settings{logger: slog.New(slog.NewTextHandler(&log, nil))}
	s.warnOfUnread(0, []string{"HOME=/root", "RMA_DEVICE=tcp", "XRMA_DEVISE=tcp"})
	s.warnOfUnread(1, []string{"RMA_DEVISE=tcp"})
	require.Empty(t, log.String())
	s.warnOfUnread(0, []string{"RMA_DEVISE=tcp", "RMA_STATS=-", "RMA_IVB_GID"})
	require.Contains(t, log.String(), `names="RMA_DEVISE RMA_IVB_GID" known="RMA_ADDRESS `)
}

// What the library reads is known: every name of a variable in its source.
func TestKnownVariables(t *testing.T) {
	found := map[string]bool{}
	for _, directory := range []string{".", "root", "address", "../verbs/ibv", "../window"} {
		files, err := filepath.Glob(filepath.Join(directory, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			if file == "environment.go" || strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, name := range regexp.MustCompile(`"(RMA_[A-Z_]+)"`).FindAllSubmatch(text, -1) {
				found[string(name[1])] = true
			}
		}
	}
	for _, name := range variables {
		require.True(t, found[name], "%s is known, and nothing reads it", name)
		delete(found, name)
	}
	require.Empty(t, found)
}
