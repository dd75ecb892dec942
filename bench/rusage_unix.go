//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has used of the processors, 0 if the system
// does not tell.
func processorTime() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

// childrenTime is the same of the processes that this one waited for.
func childrenTime() time.Duration { return usedBy(syscall.RUSAGE_CHILDREN) }

func usedBy(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
