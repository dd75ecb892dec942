//go:build unix

package proof

import (
	"math"
	"syscall"
)

// descriptors is how many this process may have open.
func descriptors() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxInt64
	}
	return int64(min(uint64(limit.Cur), math.MaxInt64))
}
