//go:build unix

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals that go to the ranks.
var forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}

// endGroup ends the process group that a rank leads.
func endGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }
