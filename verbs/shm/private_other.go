//go:build !linux || race

package shm

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// maxHeap bounds an allocation of the Go heap, which cannot refuse one that the
// machine does not have.
const maxHeap = 64 << 30

// mapPrivate allocates of the Go heap: the race detector sees only that, and other
// systems have no need of more.
func mapPrivate(size int) ([]byte, error) {
	if size > maxHeap {
		return nil, fmt.Errorf("%w: at most %d bytes can be allocated at once", verbs.ErrMemory, maxHeap)
	}
	if err := checkMemory(size); err != nil {
		return nil, err
	}
	align := pageBytes
	if size >= hugePageBytes {
		align = hugePageBytes
	}
	memory := make([]byte, size+align)
	skip := -addressOf(memory) & uint64(align-1)
	return memory[skip : skip+uint64(size) : skip+uint64(size)], nil
}

// emptyPrivate leaves memory to the collector, which keeps it for who still uses it.
func emptyPrivate([]byte) bool { return false }

func unmapPrivate([]byte) error { return nil }
