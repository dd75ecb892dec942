package launchtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

// roleVariable makes a process of this test binary a rank, and names its role.
const roleVariable = "LAUNCHTEST_ROLE"

func TestMain(m *testing.M) {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := play(context.Background(), role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var errRole = errors.New("unknown role")

func play(ctx context.Context, role string) error {
	// One write for a line, because ranks share the output.
	fmt.Printf("pid=%d\n", os.Getpid())
	one := os.Getenv("PMI_RANK") == "1"
	switch role {
	case "hello", "fails":
	case "mute":
		if one {
			fmt.Println("ending")
			os.Exit(3)
		}
	default:
		return fmt.Errorf("%w: %q", errRole, role)
	}
	w, err := world.Init(ctx)
	if err != nil {
		return err
	}
	if role == "fails" && one {
		os.Exit(3)
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	fmt.Printf("rank %d of %d: node=%s place=%s common=%s\n", w.Rank(), w.Size(), os.Getenv("SLURM_NODEID"), os.Getenv("PLACE"), os.Getenv("COMMON"))
	return w.Close()
}

var pidLine = regexp.MustCompile(`(?m)^pid=(\d+)$`)

// pids returns the n process numbers that were printed.
func pids(t *testing.T, n int, output string) (found []int) {
	t.Helper()
	for _, match := range pidLine.FindAllStringSubmatch(output, -1) {
		pid, err := strconv.Atoi(match[1])
		require.NoError(t, err)
		found = append(found, pid)
	}
	require.Len(t, found, n, "%s", output)
	return found
}

// requireGone checks that processes do not exist any more, not even as zombies.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d", pid)
	}
}

// exitStatus returns the exit status of a command that has failed.
func exitStatus(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode()
}
