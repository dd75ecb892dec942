//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has used of the processors, 0 if the system
// does not tell.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
