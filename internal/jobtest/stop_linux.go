package jobtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

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
		return fmt.Errorf("jobtest: stopping: %w", err)
	}
	return nil
}

// AwaitStop returns when a rank's process has stopped.
func (j *Job) AwaitStop(rank int) {
	j.t.Helper()
	r := j.ranks[rank]
	for stopped := false; !stopped; time.Sleep(time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", j.pid(rank)))
		if r.mu.Lock(); err != nil || r.ended {
			err = errors.Join(err, r.err)
			r.mu.Unlock()
			j.t.Fatalf("jobtest: waiting for rank %d to stop: the rank's process has ended: %v", rank, err)
		}
		r.mu.Unlock()
		stopped = bytes.Contains(status, []byte("State:\tT"))
	}
}

// Continue has a rank's process go on that is stopped.
func (j *Job) Continue(rank int) {
	j.t.Helper()
	if err := unix.Kill(j.pid(rank), unix.SIGCONT); err != nil {
		j.t.Fatalf("jobtest: continuing rank %d: %v", rank, err)
	}
}
