package world_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/pmi"
)

// A rank whose manager is gone ends, whoever has started it.
func TestManagerGone(t *testing.T) {
	if os.Getenv("PMI_FD") != "" {
		_, err := world.Init(t.Context())
		require.NoError(t, err)
		fmt.Println("joined")
		await.Killed()
		return
	}
	t.Parallel()
	server := pmi.NewServer(1, pmi.Events{})
	defer server.Close()
	file, variables, err := server.Child(0, 3)
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestManagerGone$")
	child.Env = append(os.Environ(), variables...)
	child.ExtraFiles = []*os.File{file}
	said, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	require.NoError(t, file.Close())
	text := make([]byte, len("joined\n"))
	_, err = said.Read(text)
	require.NoError(t, err)
	require.NoError(t, server.Close())
	var exit *exec.ExitError
	require.ErrorAs(t, child.Wait(), &exit)
	require.Equal(t, syscall.SIGTERM, exit.Sys().(syscall.WaitStatus).Signal())
}
