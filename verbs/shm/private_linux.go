//go:build linux && !race

package shm

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// mapPrivate maps size zeroed bytes, on huge pages where there are any. From the
// size of one up they start at its multiple.
func mapPrivate(size int) ([]byte, error) {
	if err := checkMemory(size); err != nil {
		return nil, err
	}
	align := pageBytes
	if size >= hugePageBytes {
		align = hugePageBytes
	}
	memory, err := mapAligned(-1, size, align, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verbs.ErrMemory, err)
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	if err := populate(memory); err != nil {
		return nil, fmt.Errorf("%w: %w", verbs.ErrMemory, err)
	}
	return memory, nil
}

// emptyPrivate gives the pages back and tells whether the addresses stay mapped.
func emptyPrivate(memory []byte) bool { return unix.Madvise(memory, unix.MADV_DONTNEED) == nil }

func unmapPrivate(memory []byte) error { return unmap(memory) }
