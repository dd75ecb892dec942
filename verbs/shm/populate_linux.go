package shm

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// populate backs memory with pages. A kernel without MADV_POPULATE_WRITE does so
// when they are touched.
func populate(memory []byte) error {
	if err := unix.Madvise(memory, unix.MADV_POPULATE_WRITE); err != nil && err != unix.EINVAL {
		return fmt.Errorf("madvise: %w", err)
	}
	return nil
}
