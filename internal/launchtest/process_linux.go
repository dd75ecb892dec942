package launchtest

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
)

// A Process is a process that the test may not have started itself, such as a rank. It refers to the same process
// even if another one gets its number later. Its end can be awaited even if no process reaps it.
type Process struct {
	pid int
	// file is -1 if the process had ended when ProcessOf looked for it.
	file int
}

// ProcessOf returns the process with a number. It is killed when the test ends, unless it has ended.
func ProcessOf(t testing.TB, pid int) *Process {
	t.Helper()
	file, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return &Process{pid, -1}
	}
	if err != nil {
		t.Fatalf("launchtest: finding process %d: %v", pid, err)
	}
	p := &Process{pid, file}
	t.Cleanup(func() {
		p.Kill()
		_ = unix.Close(file)
	})
	return p
}

// Kill kills the process, unless it has ended.
func (p *Process) Kill() {
	if p.file >= 0 {
		_ = unix.PidfdSendSignal(p.file, unix.SIGKILL, nil, 0)
	}
}

// AwaitEnd returns when the process has ended. It fails the test after await.Limit.
func (p *Process) AwaitEnd(t testing.TB) {
	t.Helper()
	if p.file < 0 {
		return
	}
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.file), Events: unix.POLLIN}}, int(await.Limit.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			t.Fatalf("launchtest: waiting for the end of process %d: %v", p.pid, err)
		case n == 0:
			t.Fatalf("launchtest: process %d has not ended in %v", p.pid, await.Limit)
		}
		return
	}
}
