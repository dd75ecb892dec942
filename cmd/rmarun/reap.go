package main

import (
	"errors"
	"fmt"
	"syscall"
)

// A change is the end of a child of this process, which is then reaped, or its stop.
type change struct {
	pid    int
	status syscall.WaitStatus
}

// reap waits for all children of this process, and closes into when there are none. They include processes that
// rmarun adopted because their parent had ended. Nothing else may wait for a child meanwhile.
func reap(into chan<- change) {
	defer close(into)
	for {
		var c change
		var err error
		c.pid, err = syscall.Wait4(-1, &c.status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		into <- c
	}
}

// describe describes how a process has ended, as [os.ProcessState] does.
func describe(s syscall.WaitStatus) string {
	if !s.Signaled() {
		return fmt.Sprint("exit status ", s.ExitStatus())
	}
	if s.CoreDump() {
		return fmt.Sprintf("signal: %v (core dumped)", s.Signal())
	}
	return fmt.Sprintf("signal: %v", s.Signal())
}
