//go:build unix

package shortage

import (
	"os"

	"golang.org/x/sys/unix"
)

// Descriptors has this process open no more than left descriptors until end is called. Descriptors that it closes
// meanwhile can be opened again.
func Descriptors(left int) (end func() error, err error) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return nil, err
	}
	// It is numbers that are limited, and the lowest free one is taken first: so the limit is the one after those that are
	// left. With a lower one ppoll, which takes no more descriptors than the limit, would return at once, and the process
	// would spin.
	short := before
	for range left + 1 {
		free, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer unix.Close(free)
		short.Cur = uint64(free)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &short); err != nil {
		return nil, err
	}
	return func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }, nil
}
