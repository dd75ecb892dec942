package interrupt

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// childVariable makes the test binary catch signals and print which of them it still ignores.
const childVariable = "INTERRUPT_TEST_CHILD"

// interrupted makes it wait for a signal instead, and then for the end of its input.
const interrupted = "interrupted"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case interrupted:
		ctx, _ := Context(context.Background(), syscall.SIGTERM)
		fmt.Println("waits")
		<-ctx.Done()
		fmt.Println("ends by", context.Cause(ctx).(Error).Signal)
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(1)
	}
	Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGTSTP, syscall.SIGCONT)
	_, stop := Context(context.Background(), syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	fmt.Println(signal.Ignored(syscall.SIGHUP), signal.Ignored(syscall.SIGINT))
}

// A signal that was ignored at the start stays ignored, even if the process asks to catch it. Other signals are caught.
func TestIgnoredAtStart(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	// A signal that is caught here is not ignored in the child, even if this process was started with the signal
	// ignored.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT)
	defer signal.Stop(caught)
	for trap, want := range map[string]string{
		`:`:               "false false\n",
		`trap "" HUP`:     "true false\n",
		`trap "" INT`:     "false true\n",
		`trap "" HUP INT`: "true true\n",
	} {
		c := exec.Command("sh", "-c", trap+`; exec "$0"`, self)
		c.Env = append(os.Environ(), childVariable+"=1")
		output, err := c.Output()
		require.NoError(t, err)
		require.Equal(t, want, string(output), trap)
	}
}

// A second signal ends a process that is slow to end.
func TestSecondSignal(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), childVariable+"="+interrupted)
	input, err := c.StdinPipe()
	require.NoError(t, err)
	defer input.Close()
	output, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	says := bufio.NewScanner(output)
	require.True(t, says.Scan())
	require.Equal(t, "waits", says.Text())
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.True(t, says.Scan())
	require.Equal(t, "ends by terminated", says.Text())
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	require.ErrorContains(t, c.Wait(), "signal: terminated")
}

// If no signal is left to catch, Notify and Context catch none. Package os/signal would catch all.
func TestNone(t *testing.T) {
	signal.Ignore(syscall.SIGUSR1)
	defer signal.Reset(syscall.SIGUSR1)
	Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	ctx, stop := Context(t.Context(), syscall.SIGUSR1)
	require.True(t, signal.Ignored(syscall.SIGUSR1))
	require.NoError(t, ctx.Err())
	stop()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}
