//go:build !linux

package main

import (
	"os"
	"os/exec"
)

// interruptible makes the end of a command's context interrupt the command.
func interruptible(c *exec.Cmd) {
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
}

// endWithParents does nothing: only Linux can end a process with its parent.
func endWithParents(*exec.Cmd) {}
