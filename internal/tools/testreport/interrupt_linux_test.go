package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// asCommand is set where the test binary must run as testreport.
const asCommand = "RMA_TESTREPORT_IS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// endless is a test that writes the number of its process to a file and never ends.
const endless = `package p

import (
	"os"
	"os/signal"
	"strconv"
	"testing"
)

func TestEndless(t *testing.T) {
	if os.Getenv("DEAF") != "" {
		signal.Ignore(os.Interrupt)
	}
	os.WriteFile("pid.tmp", []byte(strconv.Itoa(os.Getpid())), 0o644)
	os.Rename("pid.tmp", "pid")
	for {
		select {}
	}
}
`

// A testreport that gets SIGTERM interrupts go test, waits for it, and removes its files. If the process between a test
// binary and go is killed, the binary ends, too.
func TestNothingIsLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		deaf string // the test ignores interrupts
		end  func(t *testing.T, report, binary int)
	}{
		{"terminated", "", func(t *testing.T, report, _ int) { require.NoError(t, syscall.Kill(report, syscall.SIGTERM)) }},
		{"wrapper killed", "1", func(t *testing.T, _, binary int) {
			wrapper, alive := parent(binary)
			require.True(t, alive)
			require.NoError(t, syscall.Kill(wrapper, syscall.SIGKILL))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, scratch := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n\ngo 1.26\n"), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "p_test.go"), []byte(endless), 0o644))
			self, err := os.Executable()
			require.NoError(t, err)
			var out bytes.Buffer
			command := exec.Command(self, "run", "--", "go", "test", "-timeout=5m", "./...")
			command.Dir, command.Stdout, command.Stderr = dir, &out, &out
			command.Env = append(os.Environ(), asCommand+"=1", "DEAF="+c.deaf, "TMPDIR="+scratch)
			require.NoError(t, command.Start())
			ended := make(chan error, 1)
			go func() { ended <- command.Wait() }()
			t.Cleanup(func() { _ = command.Process.Kill() })
			var binary int
			await.True(t, "the test to run", func() bool {
				text, err := os.ReadFile(filepath.Join(dir, "pid"))
				binary, _ = strconv.Atoi(string(text))
				return err == nil
			})
			c.end(t, command.Process.Pid, binary)
			await.True(t, "the test binary to end", func() bool { _, alive := parent(binary); return !alive })
			require.Error(t, await.Receive(t, "testreport to end", ended), "%s", &out)
			left, err := os.ReadDir(scratch)
			require.NoError(t, err)
			require.Empty(t, left, "%s", &out)
		})
	}
}

// parent returns the parent of a process, and reports whether the process has not ended.
func parent(pid int) (id int, alive bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if err != nil || len(fields) < 2 || fields[0] == "Z" {
		return 0, false
	}
	id, err = strconv.Atoi(fields[1])
	return id, err == nil
}
