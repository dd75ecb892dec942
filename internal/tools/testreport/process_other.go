//go:build !linux

package main

import (
	"os"
	"os/exec"
)

// interruptible has the end of a command's context interrupt the command.
func interruptible(c *exec.Cmd) {
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
}

// endWithParents does nothing: a process can be made to end with its parent on Linux only.
func endWithParents(*exec.Cmd) {}
