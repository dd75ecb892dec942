//go:build unix

package main

import (
	"os"
	"slices"
	"syscall"
)

var (
	// ending are the signals that are to end a job, or the building of its program.
	ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	// forwarded are those that go to the ranks, which make of the others what they like.
	forwarded = append(slices.Clone(ending), syscall.SIGUSR1, syscall.SIGUSR2)
	// suspending are those that stop and continue a job.
	suspending = []os.Signal{syscall.SIGTSTP, syscall.SIGCONT}
)

// groupOfItsOwn keeps a process from what a terminal sends to rmarun's group.
func groupOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signalGroup sends a signal to the process group that a rank leads. One that has no process any more gets none.
func signalGroup(leader int, s syscall.Signal) { _ = syscall.Kill(-leader, s) }
