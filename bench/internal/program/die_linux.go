package program

import (
	"os/exec"
	"syscall"
)

// DieWithParent makes the kernel kill the process when the thread that starts it ends, as it does when this program
// is killed. The caller must keep the thread.
func DieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
