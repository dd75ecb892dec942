//go:build !linux

package launchtest

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/onesided/rma/internal/await"
)

// A Process is one that the test may not have started itself, such as a rank, and of which it sees the end.
type Process struct{ pid int }

// ProcessOf finds a process by its number. One that the test's end finds is killed.
func ProcessOf(t testing.TB, pid int) *Process {
	t.Helper()
	p := &Process{pid}
	t.Cleanup(p.Kill)
	return p
}

// Kill kills the process, unless it has ended.
func (p *Process) Kill() { _ = syscall.Kill(p.pid, syscall.SIGKILL) }

// AwaitEnd returns when the process has ended. It fails the test after await.Limit.
func (p *Process) AwaitEnd(t testing.TB) {
	t.Helper()
	await.True(t, fmt.Sprintf("the end of process %d", p.pid), func() bool { return syscall.Kill(p.pid, 0) != nil })
}
