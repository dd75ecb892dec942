package world

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const boundVariable = "RMA_TEST_ALLOWED"

// Processes that are bound to the same cores say the same, and others something else.
func TestAllowed(t *testing.T) {
	if os.Getenv(boundVariable) != "" {
		require.NoError(t, os.WriteFile(os.Getenv(boundVariable), []byte(allowed()), 0o600))
		return
	}
	var mine unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &mine))
	if mine.Count() < 2 {
		t.Skip("skipped: there is one core only to bind processes to")
	}
	var cores []int
	for core := 0; len(cores) < 2; core++ {
		if mine.IsSet(core) {
			cores = append(cores, core)
		}
	}
	said := func(bound ...int) string {
		file := t.TempDir() + "/said"
		child := exec.Command(os.Args[0], "-test.run", "^TestAllowed$")
		child.Env = append(os.Environ(), boundVariable+"="+file)
		var output []byte
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			// The thread ends with the goroutine. A process is bound as the thread that starts it.
			runtime.LockOSThread()
			set := mine
			if len(bound) > 0 {
				set.Zero()
				for _, core := range bound {
					set.Set(core)
				}
			}
			if err = unix.SchedSetaffinity(0, &set); err == nil {
				output, err = child.CombinedOutput()
			}
		}()
		<-done
		require.NoError(t, err, "%s", output)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	first, second, both := said(cores[0]), said(cores[1]), said(cores...)
	require.NotEqual(t, first, second)
	require.NotEqual(t, first, both)
	require.NotEqual(t, second, both)
	require.Equal(t, first, said(cores[0]))
	require.Equal(t, allowed(), said())
}
