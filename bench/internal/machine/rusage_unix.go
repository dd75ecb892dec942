//go:build unix

package machine

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time that this process has used, or 0 if the system does not report it.
func ProcessorTime() time.Duration { return usedBy(syscall.RUSAGE_SELF) }

// childrenTime returns that of the children for which this process has waited.
func childrenTime() time.Duration { return usedBy(syscall.RUSAGE_CHILDREN) }

func usedBy(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
