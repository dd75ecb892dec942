package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/launchtest"
)

// A launcher is killed while its ranks write to all, and while they wait in the exchange
// for one that does not join. No rank outlives it.
func TestLauncherKilled(t *testing.T) {
	for _, c := range []struct {
		name  string
		start starter
	}{
		{"rmarun", byRmarun},
		{"hydra", byHydra},
		{"slurm", func(t *testing.T, environment []string, program ...string) *exec.Cmd {
			return bySlurm(launchtest.Slurm(t, 2))(t, environment, program...)
		}},
	} {
		for _, role := range []string{orphanRole, absentRole} {
			t.Run(c.name+", "+role, func(t *testing.T) {
				command := c.start(t, append(overTCP.environment(), as(role)...), launchtest.Self(t))
				out, err := command.StdoutPipe()
				require.NoError(t, err)
				require.NoError(t, command.Start())
				ranks := awaitRanks(t, bufio.NewScanner(out))
				// Where it is a keeper's process, the launcher is killed with it, and
				// what that has started is left to itself.
				require.NoError(t, command.Process.Kill())
				begun := time.Now()
				for _, rank := range ranks {
					rank.awaitEnd(t)
				}
				t.Logf("%v from the kill to the end of all", time.Since(begun))
				require.Error(t, command.Wait())
			})
		}
	}
}

// An orphan is the process of a rank, as a file that tells its end. The process is not a
// child of the test's.
type orphan struct{ pid, file int }

// awaitRanks reads what ranks print until all have said that they are where they are to be.
func awaitRanks(t *testing.T, lines *bufio.Scanner) (ranks []orphan) {
	t.Helper()
	for len(ranks) < launchedRanks {
		require.True(t, lines.Scan(), "%d of %d ranks have come", len(ranks), launchedRanks)
		var pid int
		if n, _ := fmt.Sscanf(lines.Text(), readyFormat, &pid); n != 1 {
			continue
		}
		file, err := unix.PidfdOpen(pid, 0)
		require.NoError(t, err)
		t.Cleanup(func() {
			_ = unix.PidfdSendSignal(file, unix.SIGKILL, nil, 0)
			_ = unix.Close(file)
		})
		ranks = append(ranks, orphan{pid, file})
	}
	return ranks
}

// awaitEnd returns when the process has ended. It fails the test well before the rank would
// give up on its own.
func (o orphan) awaitEnd(t *testing.T) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(o.file), Events: unix.POLLIN}}, int((roleLimit / 3).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, 1, n, "the rank of process %d outlives its launcher", o.pid)
		return
	}
}
