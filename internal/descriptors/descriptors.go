// Package descriptors counts the file descriptors that this process can still open.
package descriptors

import (
	"math"

	"golang.org/x/sys/unix"

	_ "github.com/onesided/rma/internal/platform"
)

// Limit is RLIMIT_NOFILE: each descriptor that this process opens has a number below it.
func Limit() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt32
	}
	return int(min(limit.Cur, math.MaxInt32))
}

// Free returns the number of descriptors that this process can still open, or most if it is more.
//
// It looks for free numbers from the limit downwards. The system assigns the lowest free number first. So the first
// numbers that Free looks at are free, unless the process is nearly out of descriptors.
func Free(most int) int {
	free := 0
	for number := Limit() - 1; number >= 0 && free < most; number-- {
		if _, err := unix.FcntlInt(uintptr(number), unix.F_GETFD, 0); err == unix.EBADF {
			free++
		}
	}
	return free
}
