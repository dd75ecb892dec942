// Package doctest finds the code blocks of documents and builds their programs, for tests that keep documents true.
package doctest

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/onesided/rma/internal/platform"
)

// A Block is a fenced block of a document.
type Block struct {
	// File is the document, and Line the number of the block's first line.
	File string
	Line int
	// Language is the language of the fence, such as go or sh. It is empty for output.
	Language, Text string
	// Before is the text between the previous block and this one.
	Before string
}

// String returns where the block is.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// IsProgram reports whether the block is a whole Go program.
func (b Block) IsProgram() bool {
	return b.Language == "go" && strings.Contains("\n"+b.Text, "\npackage main\n")
}

// Blocks returns the blocks of a document, in their order.
func Blocks(t testing.TB, file string) (blocks []Block) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var open *Block
	before, number := "", 0
	for line := range strings.Lines(string(text)) {
		number++
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &Block{File: file, Line: number + 1, Language: strings.TrimSpace(language), Before: before}
		case fence:
			blocks = append(blocks, *open)
			open, before = nil, ""
		case open != nil:
			open.Text += line
		default:
			before += line
		}
	}
	require.Nil(t, open, "%s: a block does not end", file)
	return blocks
}

// Build builds the program of a block, as if it were a file of the calling test's package directory, and returns its path.
func Build(t testing.TB, b Block) (program string) {
	t.Helper()
	dir := t.TempDir()
	file, overlay, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(file, []byte(b.Text), 0o600))
	// Unlike go build, go run keeps the linked program for its next call, if the source is in the same place.
	place, err := filepath.Abs(filepath.Join("testdata", fmt.Sprintf("program%x.go", crc32.ChecksumIEEE([]byte(b.Text)))))
	require.NoError(t, err)
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{place: file}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replaced, 0o600))
	said, err := exec.CommandContext(t.Context(), "go", "run", "-buildvcs=false", "-overlay", overlay, "-exec", "cp", place, program).CombinedOutput()
	require.NoError(t, err, "%v: %s", b, said)
	return program
}
