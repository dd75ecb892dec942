//go:build linux && !race

package shm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

const (
	// leastArena is the least address space that is reserved at once. The system bounds the mappings of a process, so
	// allocations must not leave one each: an arena takes two, however much was allocated from it.
	leastArena = 64 << 20
	// reservedTimes bounds the address space that is kept so that freed memory is reused late, as a multiple of the
	// largest total of allocations.
	reservedTimes = 4
)

// private is the memory of a fabric: outside the Go heap, on huge pages if there are any.
type private struct {
	mu     sync.Mutex
	arenas []*arena
	// reserved is the length of all arenas, live that of all allocations, and most the largest value of live.
	reserved, live, most int
}

// arena is a range of addresses whose first ready bytes can be accessed. They stay accessible: freed memory has no
// pages, and a late access there meets no other data until it is allocated again.
type arena struct {
	memory      []byte
	ready       int
	allocations allocations
	// unmap is due when the fabric, all of whose devices are closed, is unreachable.
	unmap runtime.Cleanup
}

// reserve returns n zeroed bytes, which get pages when they are touched.
func (p *private) reserve(n int) ([]byte, error) {
	length, align := wholePages(n)
	p.mu.Lock()
	defer p.mu.Unlock()
	a, offset, err := p.place(length, align)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", verbs.ErrMemory, limitReason(err), err)
	}
	p.live += length
	p.most = max(p.most, p.live)
	return a.memory[offset : offset+n : offset+n], nil
}

// back backs memory of reserve with pages.
func (p *private) back(ctx context.Context, memory []byte) (int, error) {
	if err := checkMemory(len(memory)); err != nil {
		return 0, err
	}
	return inPieces(ctx, memory, backedPiece, func(piece []byte) error {
		if err := populate(piece); err != nil {
			return fmt.Errorf("%w: %w", verbs.ErrMemory, err)
		}
		return nil
	})
}

// place finds room. It prefers addresses that were never used, in proportion to what was allocated, then those of freed
// memory, and then new ones.
func (p *private) place(length, align int) (*arena, int, error) {
	if a, offset, ok := p.find((*allocations).fresh, length, align); ok {
		return a, offset, nil
	}
	most := reservedTimes * max(p.most, p.live+length)
	// Double the reserved space, so that there are few arenas.
	size := max(leastArena, length, min(p.reserved, most-p.reserved))
	if p.reserved+size <= most {
		if a, err := p.extend(length, size); err == nil {
			return a, 0, nil
		}
	}
	if a, offset, ok := p.find((*allocations).reuse, length, align); ok {
		return a, offset, nil
	}
	// The free pieces are too short.
	size = max(leastArena, length)
	a, err := p.extend(length, size)
	if err != nil && size > length {
		a, err = p.extend(length, length)
	}
	return a, 0, err
}

// find takes a piece that the given find returns in one of the arenas.
func (p *private) find(find func(a *allocations, length, align int) (int, bool), length, align int) (*arena, int, bool) {
	for _, a := range p.arenas {
		if offset, ok := find(&a.allocations, length, align); ok && a.take(offset, length) == nil {
			return a, offset, true
		}
	}
	return nil, 0, false
}

// extend reserves an arena of size bytes and takes the first length of them.
func (p *private) extend(length, size int) (*arena, error) {
	memory, err := reserve(size, hugePageBytes)
	if err != nil {
		return nil, err
	}
	a := &arena{memory: memory, allocations: newAllocations(0, size)}
	offset, _ := a.allocations.fresh(length, hugePageBytes)
	if err := a.take(offset, length); err != nil {
		return nil, errors.Join(err, unmap(memory))
	}
	p.arenas = append(p.arenas, a)
	p.reserved += size
	return a, nil
}

// take makes a piece live and accessible.
func (a *arena) take(offset, length int) error {
	if end := offset + length; end > a.ready {
		fresh := a.memory[a.ready:end]
		if err := unix.Mprotect(fresh, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			a.allocations.keep(piece{offset, length})
			return fmt.Errorf("mprotect of %d bytes: %w", len(fresh), &memoryError{&privateMemory, uint64(len(fresh)), err})
		}
		_ = unix.Madvise(fresh, unix.MADV_HUGEPAGE)
		a.ready = end
	}
	a.allocations.live[offset] = length
	return nil
}

// free takes the pages from memory of reserve. It reports whether the memory was of reserve.
func (p *private) free(memory []byte) bool {
	a, offset, length, live := p.drop(memory)
	if !live {
		return false
	}
	// Without the mutex, because it takes long.
	a.giveBack(offset, length)
	p.mu.Lock()
	defer p.mu.Unlock()
	a.allocations.keep(piece{offset, length})
	return true
}

// drop ends the allocation of memory, if it is one. Its piece stays unused until allocations.keep.
func (p *private) drop(memory []byte) (a *arena, offset, length int, live bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arenas {
		if bounds.Contains(bounds.Address(a.memory), uint64(len(a.memory)), bounds.Address(memory), 1) {
			offset = int(bounds.Address(memory) - bounds.Address(a.memory))
			length, live = a.allocations.drop(offset)
			p.live -= length
			return a, offset, length, live
		}
	}
	return nil, 0, 0, false
}

// giveBack takes the pages from a piece.
func (a *arena) giveBack(offset, length int) {
	giveBack(a.memory[offset:offset+length], func(piece []byte) error { return unix.Madvise(piece, unix.MADV_DONTNEED) })
}

// retire frees everything when the last device has been closed. Until owner is unreachable or in use again, a late
// goroutine can access its addresses, which then have no data of others.
func (p *private) retire(owner *Fabric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = 0
	for _, a := range p.arenas {
		for offset := range a.allocations.live {
			length, _ := a.allocations.drop(offset)
			a.giveBack(offset, length)
			a.allocations.keep(piece{offset, length})
		}
		a.unmap = runtime.AddCleanup(owner, func(memory []byte) { _ = unmap(memory) }, a.memory)
	}
}

// revive undoes retire, because there is a device again.
func (p *private) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arenas {
		a.unmap.Stop()
	}
}
