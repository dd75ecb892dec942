package main

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// interruptible makes the end of a command's context interrupt the command and all processes that it has started.
func interruptible(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error {
		if err := syscall.Kill(-c.Process.Pid, syscall.SIGINT); err != syscall.ESRCH {
			return err
		}
		return os.ErrProcessDone
	}
}

// endWithParents makes the kernel kill this process when its parent ends, and a command when the thread that starts
// it ends.
func endWithParents(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Without it the process ends with its command.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}
