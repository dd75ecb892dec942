package jobtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Stop stops this process by SIGSTOP, with all its threads, until Job.Continue. It is for processes that a test has
// started.
func Stop() error {
	// A signal to the thread itself has stopped it when the call returns. Another thread might take a signal to the
	// process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP); err != nil {
		return fmt.Errorf("jobtest: stopping: %w", err)
	}
	return nil
}

// Stop stops a rank's process by SIGSTOP, and returns when all its threads are stopped.
func (j *Job) Stop(rank int) {
	j.t.Helper()
	if err := unix.Kill(j.Pid(rank), unix.SIGSTOP); err != nil {
		j.t.Fatalf("jobtest: stopping rank %d: %v", rank, err)
	}
	j.AwaitStop(rank)
}

// AwaitStop returns when all threads of a rank's process are stopped.
func (j *Job) AwaitStop(rank int) {
	j.t.Helper()
	j.AwaitState(rank, "its process to be stopped", func() bool {
		statuses, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", j.Pid(rank)))
		for _, path := range statuses {
			// Without a status file the thread has ended. AwaitState notices the end of the process.
			if status, err := os.ReadFile(path); err == nil && !bytes.Contains(status, []byte("State:\tT")) {
				return false
			}
		}
		return len(statuses) > 0
	})
}

// Continue continues a stopped process of a rank.
func (j *Job) Continue(rank int) {
	j.t.Helper()
	if err := unix.Kill(j.Pid(rank), unix.SIGCONT); err != nil {
		j.t.Fatalf("jobtest: continuing rank %d: %v", rank, err)
	}
}
