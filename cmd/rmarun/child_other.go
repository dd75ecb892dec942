//go:build unix && !linux

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// attributes returns the attributes of a rank's process. It leads its own group, so that the processes that it starts
// can be ended with it. These systems have no signal for a parent's death.
func attributes() *syscall.SysProcAttr { return groupOfItsOwn() }

// A deathPipe does nothing on these systems.
type deathPipe struct{}

func newDeathPipe() (deathPipe, error) { return deathPipe{}, nil }

func (deathPipe) files() []*os.File { return nil }
func (deathPipe) tie(int)           {}
func (deathPipe) started()          {}

// readable is FIONREAD, the request for the number of bytes in a pipe. It is the same on all these systems.
const readable = 0x4004667f

// executable returns the file of this program.
func executable() (string, error) { return os.Executable() }

// adopt does nothing: these systems give orphans to process 1.
func adopt() {}

// children returns none: rmarun has no child here that it did not start.
func children() []int { return nil }

// parent returns -1: the parent is not known.
func parent(int) int { return -1 }

// withoutStop runs f while SIGTTOU does not stop this process. The runtime cannot restore the default action.
func withoutStop(f func() error) error {
	signal.Ignore(syscall.SIGTTOU)
	return f()
}

// stopSelf stops this process, and returns when it is continued. It uses SIGSTOP because the runtime cannot restore
// the default action of SIGTSTP.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
