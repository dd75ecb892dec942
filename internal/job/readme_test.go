package job_test

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readmeProgram builds the program of the README whose text begins so, and returns it and
// what the README has behind it.
func readmeProgram(t *testing.T, begins string) (program, behind string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "```go\n"+begins)
	require.True(t, found, "the README has no program that begins with %q", begins)
	source, behind, found := strings.Cut(begins+after, "```\n")
	require.True(t, found)
	dir := t.TempDir()
	file, overlay, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	// Other than go build, go run keeps what it has linked for the next time, if the program is in the same place then.
	place, err := filepath.Abs(filepath.Join("testdata", fmt.Sprintf("readme%x.go", crc32.ChecksumIEEE([]byte(begins)))))
	require.NoError(t, err)
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{place: file}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replaced, 0o600))
	said, err := exec.CommandContext(t.Context(), "go", "run", "-buildvcs=false", "-overlay", overlay, "-exec", "cp", place, program).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return program, behind
}

// Programs of the README print what it says that they print.
func TestReadme(t *testing.T) {
	busy.Acquire(t)
	for _, c := range []struct {
		name, begins, says string
	}{
		{"first", "package main", "Each rank prints"},
		{"in virtual time", "// Turns has", "It prints"},
	} {
		t.Run(c.name, func(t *testing.T) {
			program, behind := readmeProgram(t, c.begins)
			_, behind, found := strings.Cut(behind, c.says)
			require.True(t, found)
			_, behind, found = strings.Cut(behind, "```\n")
			require.True(t, found)
			want, _, found := strings.Cut(behind, "```\n")
			require.True(t, found)

			command := exec.CommandContext(t.Context(), program)
			command.Dir = t.TempDir()
			command.Env = append(os.Environ(), "RMA_RANKS=4")
			out, err := command.Output()
			require.NoError(t, err)
			require.Equal(t, sortedLines(want), sortedLines(string(out)))
		})
	}
}

// sortedLines are lines that ranks have printed in any order.
func sortedLines(text string) []string {
	return slices.Sorted(strings.Lines(text))
}
