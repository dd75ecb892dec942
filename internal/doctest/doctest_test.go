package doctest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/doctest"
)

func TestBlocks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	const fence = "```"
	require.NoError(t, os.WriteFile(file, []byte("One.\n"+fence+"go\npackage main\n\nfunc main() { print(1) }\n"+fence+"\nIt prints\n"+fence+"\n1\n"+fence+"\n"+fence+"sh\ntrue\n"+fence+"\n"), 0o600))
	blocks := doctest.Blocks(t, file)
	require.Equal(t, []doctest.Block{
		{file, 3, "go", "package main\n\nfunc main() { print(1) }\n", "One.\n"},
		{file, 9, "", "1\n", "It prints\n"},
		{file, 12, "sh", "true\n", ""},
	}, blocks)
	require.True(t, blocks[0].IsProgram())
	require.False(t, blocks[2].IsProgram())
	said, err := exec.CommandContext(t.Context(), doctest.Build(t, blocks[0])).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "1", string(said))
}
