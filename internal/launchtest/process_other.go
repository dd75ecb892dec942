//go:build !linux

package launchtest

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/onesided/rma/internal/await"
)

// A Process is a process that the test may not have started itself, such as a rank. Its end can be awaited.
type Process struct{ pid int }

// ProcessOf returns the process with a number. It is killed when the test ends, unless it has ended.
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
