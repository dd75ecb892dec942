//go:build unix && !linux

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// attributes of a rank's process: it leads a group of its own, so that what it
// starts can be ended with it. These systems have no signal for a parent's death.
func attributes() *syscall.SysProcAttr { return groupOfItsOwn() }

// A deathPipe is nothing here.
type deathPipe struct{}

func newDeathPipe() (deathPipe, error) { return deathPipe{}, nil }

func (deathPipe) files() []*os.File { return nil }
func (deathPipe) tie(int)           {}
func (deathPipe) started()          {}

// readable is the request for how many bytes a pipe has, FIONREAD, which is the same on all these systems.
const readable = 0x4004667f

// executable is the file of this program.
func executable() (string, error) { return os.Executable() }

// adopt does nothing: these systems give orphans to process 1.
func adopt() {}

// children are none that rmarun did not start.
func children() []int { return nil }

// parent is not known.
func parent(int) int { return -1 }

// withoutStop runs f while no SIGTTOU stops this process. The runtime cannot set it back to the default.
func withoutStop(f func() error) error {
	signal.Ignore(syscall.SIGTTOU)
	return f()
}

// stopSelf stops this process, and returns when it is continued. The runtime cannot set SIGTSTP back to the default.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
