package worldtest

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Stop stops this process by SIGSTOP, with all its threads, until Job.Continue. It is
// for processes that a test has started.
func Stop() error {
	// A signal to the thread itself, unlike one to the process, which another thread may
	// take, has stopped it when the call returns.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
		return fmt.Errorf("worldtest: stopping: %w", err)
	}
	return nil
}

// Continue has a rank's process go on that is stopped.
func (j *Job) Continue(rank int) {
	j.t.Helper()
	if err := unix.Kill(j.PID(rank), unix.SIGCONT); err != nil {
		j.t.Fatalf("worldtest: continuing rank %d: %v", rank, err)
	}
}
