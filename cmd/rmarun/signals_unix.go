//go:build unix

package main

import (
	"os"
	"slices"
	"syscall"
)

var (
	// ending are the signals that end a job, or the build of its program.
	ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	// forwarded are the signals that go to the ranks. For those that are not ending the ranks decide what to do.
	forwarded = append(slices.Clone(ending), syscall.SIGUSR1, syscall.SIGUSR2)
	// suspending are the signals that stop and continue a job.
	suspending = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT}
)

// groupOfItsOwn keeps signals of the terminal to rmarun's group away from a process.
func groupOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the process group that a rank leads, if it still has a process.
func signalGroup(leader int, s syscall.Signal) { _ = syscall.Kill(-leader, s) }
