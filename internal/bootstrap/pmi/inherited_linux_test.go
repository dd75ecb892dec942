package pmi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() {
	roles["takes"], roles["closes"], roles["stranger"] = takes, closes, stranger
}

// expect returns an error if err is not want.
func expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v, want %w", err, want)
	}
	return nil
}

// takes is a rank that calls FromEnvironment more than once, and starts a process.
func takes(ctx context.Context) error {
	c, err := FromEnvironment()
	if err != nil {
		return err
	}
	if _, err := FromEnvironment(); !errors.Is(err, ErrTaken) {
		return expect(err, ErrTaken)
	}
	// In the child process the descriptor with the manager's number is another socket.
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	defer theirs.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), rankVariable+"=stranger")
	child.ExtraFiles = []*os.File{theirs}
	if output, err := child.CombinedOutput(); err != nil {
		return fmt.Errorf("a process that a rank has started: %w: %s", err, output)
	}
	if n, err := syscall.Read(pair[0], make([]byte, 100)); n > 0 || !errors.Is(err, syscall.EAGAIN) {
		return fmt.Errorf("a process that a rank has started wrote %d bytes into a socket of its program: %w", n, err)
	}
	for range 3 {
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if err := c.Finalize(); err != nil {
			return err
		}
		if c, err = FromEnvironment(); err != nil {
			return err
		}
	}
	return c.Finalize()
}

// stranger is a process that a rank has started.
func stranger(context.Context) error {
	_, err := FromEnvironment()
	return expect(err, ErrNoManager)
}

// closes is a rank whose program has closed the manager's connection and opened another socket with its number.
func closes(context.Context) error {
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if err != nil {
		return err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := syscall.Dup3(pair[1], fd, 0); err != nil {
		return err
	}
	_, err = FromEnvironment()
	if err := expect(err, ErrEnvironment); err != nil {
		return err
	}
	if n, err := syscall.Read(pair[0], make([]byte, 100)); n > 0 || !errors.Is(err, syscall.EAGAIN) {
		return fmt.Errorf("%d bytes were written into a socket of the program: %w", n, err)
	}
	// The socket is still open.
	_, err = syscall.Write(fd, []byte("mine"))
	return err
}

// A process takes an inherited connection once, and processes that it starts do not take it. A descriptor that has
// become another file is not touched.
func TestInherited(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for role := range roles {
		if role == "stranger" {
			continue
		}
		t.Run(role, func(t *testing.T) {
			s := NewServer(1, Events{})
			defer s.Close()
			file, environment, err := s.Child(0, 3)
			require.NoError(t, err)
			command := exec.CommandContext(t.Context(), self)
			command.Env = append(append(os.Environ(), environment...), rankVariable+"="+role, "GORACE=atexit_sleep_ms=0")
			command.ExtraFiles = []*os.File{file}
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)
			require.NoError(t, file.Close())
		})
	}
}
