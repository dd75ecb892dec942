package interrupt

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// stopVariable makes the test binary catch the signal that stops a process, and print whether the kernel still drops
// it.
const stopVariable = "INTERRUPT_TEST_STOP"

func init() {
	if os.Getenv(stopVariable) == "" {
		return
	}
	Notify(make(chan os.Signal, 1), syscall.SIGTSTP)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, digits, _ := strings.Cut(string(status), "SigIgn:")
	digits, _, _ = strings.Cut(digits, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
	if err != nil {
		panic(err)
	}
	fmt.Println(mask>>(syscall.SIGTSTP-1)&1 == 1)
	os.Exit(0)
}

// The runtime does not know whether a signal that stops a process was ignored at the start.
func TestStopIgnoredAtStart(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	// A signal that is caught here is not ignored in the child, even if this process was started with the signal
	// ignored.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTSTP)
	defer signal.Stop(caught)
	for trap, want := range map[string]string{`:`: "false\n", `trap "" TSTP`: "true\n"} {
		c := exec.Command("sh", "-c", trap+`; exec "$0"`, self)
		c.Env = append(os.Environ(), stopVariable+"=1")
		output, err := c.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(output), trap)
	}
}
