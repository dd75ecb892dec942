package launchtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// programs are the files that Build and Self have made in this process.
var programs struct {
	sync.Mutex
	dir   string
	paths map[string]string
	// hold is the supervisor that removes dir when this process is gone.
	hold *supervisedCommand
}

// Build compiles a program of this module, such as "./examples/wordcount", once in a process, and returns its path.
// Every user may run it. It is removed when the process ends.
func Build(t testing.TB, program string) string {
	t.Helper()
	return once(t, program, func(path string) error {
		module, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
		if err != nil {
			return fmt.Errorf("launchtest: finding the module: %w", err)
		}
		command := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-w", "-o", path, program)
		command.Dir = filepath.Dir(strings.TrimSpace(string(module)))
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("launchtest: building %s: %w\n%s", program, err, output)
		}
		return os.Chmod(path, 0o755)
	})
}

// Self returns the path of a copy of this test binary, which every user may run.
func Self(t testing.TB) string {
	t.Helper()
	return once(t, "self", func(path string) error {
		binary, err := os.Executable()
		if err != nil {
			return err
		}
		from, err := os.Open(binary)
		if err != nil {
			return err
		}
		defer from.Close()
		to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, from); err != nil {
			_ = to.Close()
			return err
		}
		return to.Close()
	})
}

// Directory makes a directory that every user may read and to which the ranks under a Slurm may write. It is removed
// when the test ends.
func Directory(t testing.TB) string {
	t.Helper()
	dir, err := directory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("launchtest: %v", err)
		}
	})
	return dir
}

func directory() (string, error) {
	dir, err := os.MkdirTemp("", "launchtest-")
	if err != nil {
		return "", fmt.Errorf("launchtest: %w", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", fmt.Errorf("launchtest: %w", err)
	}
	if user := slurmUser(); user != 0 {
		if err := os.Chown(dir, user, user); err != nil {
			return "", fmt.Errorf("launchtest: %w", err)
		}
	}
	return dir, nil
}

// prepare makes the directory of programs, with a supervisor that removes it. The caller holds the lock of programs.
func prepare() error {
	if programs.hold != nil {
		return nil
	}
	dir, err := directory()
	if err != nil {
		return err
	}
	hold, err := supervise(context.Background(), supervisorConfig{Remove: dir})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	// A reader of this process's standard error to its end waits for the removal.
	hold.Stderr = os.Stderr
	if err := hold.Start(); err != nil {
		hold.finish()
		return errors.Join(fmt.Errorf("launchtest: starting a supervisor: %w", err), os.RemoveAll(dir))
	}
	programs.dir, programs.paths, programs.hold = dir, make(map[string]string), hold
	return nil
}

// once makes a program unless it has been made.
func once(t testing.TB, name string, produce func(path string) error) string {
	t.Helper()
	need(t)
	programs.Lock()
	defer programs.Unlock()
	if path, ok := programs.paths[name]; ok {
		return path
	}
	if err := prepare(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(programs.dir, fmt.Sprintf("%d-%s", len(programs.paths), filepath.Base(name)))
	if err := produce(path); err != nil {
		t.Fatal(err)
	}
	programs.paths[name] = path
	return path
}
