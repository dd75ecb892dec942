//go:build unix

package shortage

import (
	"os"

	"golang.org/x/sys/unix"
)

// Descriptors has this process open no more descriptors until end is called. Descriptors that it closes meanwhile can be
// opened again.
func Descriptors() (end func() error, err error) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		return nil, err
	}
	// The limit is the lowest number that is free. With a lower one ppoll, which takes no more descriptors than the limit,
	// would return at once, and the process would spin.
	free, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Close(free); err != nil {
		return nil, err
	}
	short := before
	short.Cur = uint64(free)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &short); err != nil {
		return nil, err
	}
	return func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }, nil
}
