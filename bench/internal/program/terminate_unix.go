//go:build unix

package program

import (
	"os/exec"
	"syscall"
)

// TerminateFirst lets cmd's context end it by SIGTERM, which launchers pass on to their ranks. It keeps a terminal's
// signals from cmd: they act through the context.
func TerminateFirst(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
}
