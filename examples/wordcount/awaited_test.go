package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/launchtest"
)

// A rank that is started by hand before rank 0 logs which rank it waits for.
func TestSaysWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	program, top, key, root := launchtest.Build(t, "./examples/wordcount"), publicTree(t, 1), launchtest.KeyFile(t), launchtest.RootAddress()
	ctx, cancel := context.WithTimeout(t.Context(), launchtest.Limit)
	defer cancel()
	rank := func(number int) *exec.Cmd {
		command := exec.CommandContext(ctx, program, "-verify", top)
		command.Env = append(withoutManager(), "RMA_DEVICE=", "RMA_HOST=", "RMA_ADDRESS=",
			"RMA_ROOT="+root, fmt.Sprintf("RMA_RANK=%d", number), "RMA_SIZE=2", "RMA_KEY_FILE="+key)
		return command
	}
	one, zero := rank(1), rank(0)
	says, err := one.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, one.Start())
	lines := bufio.NewScanner(says)
	for told := false; !told; told = strings.Contains(lines.Text(), "level=WARN") {
		require.True(t, lines.Scan(), "rank 1 has ended")
	}
	contains(t, lines.Text(), "the root does not answer, and is called again", "rank=1", "root="+root)
	var out, errout bytes.Buffer
	zero.Stdout, zero.Stderr = &out, &errout
	require.NoError(t, zero.Run(), "%s", &errout)
	contains(t, out.String(), "verified: ")
	_, err = io.Copy(io.Discard, says)
	require.NoError(t, err)
	require.NoError(t, one.Wait())
}
