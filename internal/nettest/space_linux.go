package nettest

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	_ "github.com/onesided/rma/internal/platform"
)

// newSpace makes a network namespace. It exists as long as the file is open or a process is in it.
func newSpace() (space *os.File, err error) {
	if user := os.Geteuid(); user != 0 {
		return nil, fmt.Errorf("nettest: making a network namespace: this is user %d: %w", user, os.ErrPermission)
	}
	err = onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("nettest: making a network namespace: %w", err)
		}
		space, err = os.Open(ownSpace)
		return err
	})
	return space, err
}

// inside calls f on a thread in the namespace.
func inside(space *os.File, f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("nettest: entering a network namespace: %w", err)
		}
		return f()
	})
}

// ownSpace is the namespace of the calling thread.
const ownSpace = "/proc/thread-self/ns/net"

// onThread calls f on a thread that f may move to another namespace, and moves it back afterwards. A thread that
// cannot be moved back ends.
//
// It does not use the process's first thread: readers of /proc/self take that thread's namespace for the process's.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// While this goroutine holds the first thread, the next goroutine gets another.
			done <- onThread(f)
			runtime.UnlockOSThread()
			return
		}
		home, err := os.Open(ownSpace)
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		defer home.Close()
		err = errors.New("nettest: the function ended its goroutine")
		defer func() {
			if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
				err = errors.Join(err, fmt.Errorf("nettest: returning from a network namespace: %w", back))
			} else {
				runtime.UnlockOSThread()
			}
			done <- err
		}()
		err = f()
	}()
	return <-done
}
