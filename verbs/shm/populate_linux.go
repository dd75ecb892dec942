package shm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// populate backs memory with pages. If the kernel, or a filter of system calls, does not have MADV_POPULATE_WRITE,
// pages come when they are touched.
func populate(memory []byte) error {
	switch err := unix.Madvise(memory, unix.MADV_POPULATE_WRITE); err {
	case nil, unix.EINVAL, unix.ENOSYS, unix.EPERM:
		return nil
	default:
		return fmt.Errorf("madvise: %w", err)
	}
}
