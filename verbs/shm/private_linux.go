//go:build linux && !race

package shm

import (
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/bounds"
)

// arenaBytes of address space are reserved at once. The system bounds the mappings of a
// process, so memory that comes and goes must not leave one each time: an arena takes
// two, however much was allocated from it.
const arenaBytes = 64 << 30

// private is the memory of a fabric: outside the Go heap, on huge pages where there are
// any.
type private struct {
	mu     sync.Mutex
	arenas []*arena
}

// arena is a range of addresses whose first ready bytes can be touched. They stay so:
// what is freed has no pages, and who still uses it meets nobody there until the arena
// has been used up once.
type arena struct {
	memory []byte
	ready  int
	places places
	// unmap is due when the fabric, all of whose devices are closed, is unreachable.
	unmap runtime.Cleanup
}

// allocate gives n zeroed bytes that are backed by pages.
func (p *private) allocate(n int) ([]byte, error) {
	length, align := wholePages(n)
	if err := checkMemory(length); err != nil {
		return nil, err
	}
	a, offset, err := p.place(length, align)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verbs.ErrMemory, err)
	}
	// Aside from the mutex, because it lasts.
	if err := populate(a.memory[offset : offset+length]); err != nil {
		p.free(a.memory[offset:])
		return nil, fmt.Errorf("%w: %w", verbs.ErrMemory, err)
	}
	return a.memory[offset : offset+n : offset+n], nil
}

// place finds room, in new addresses as long as there are some.
func (p *private) place(length, align int) (*arena, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, find := range []func(*places, int, int) (int, bool){(*places).fresh, (*places).reuse} {
		for _, a := range p.arenas {
			offset, ok := find(&a.places, length, align)
			if ok && a.take(offset, length) == nil {
				return a, offset, nil
			}
		}
	}
	a, err := newArena(length, max(arenaBytes, length))
	if err != nil {
		return nil, 0, err
	}
	p.arenas = append(p.arenas, a)
	offset, _ := a.places.fresh(length, align)
	return a, offset, a.take(offset, length)
}

// newArena reserves size bytes, or less where address space is limited, but at least
// length.
func newArena(length, size int) (*arena, error) {
	for {
		memory, err := reserve(size, hugePageBytes)
		if err == nil {
			return &arena{memory: memory, places: newPlaces(0, size)}, nil
		}
		if size == length {
			return nil, err
		}
		size = max(size/2&^(hugePageBytes-1), length)
	}
}

// take makes a piece live, which can be touched then.
func (a *arena) take(offset, length int) error {
	if end := offset + length; end > a.ready {
		fresh := a.memory[a.ready:end]
		if err := unix.Mprotect(fresh, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			a.places.keep(extent{offset, length})
			return fmt.Errorf("mprotect of %d bytes: %w", len(fresh), err)
		}
		_ = unix.Madvise(fresh, unix.MADV_HUGEPAGE)
		a.ready = end
	}
	a.places.live[offset] = length
	return nil
}

// free takes the pages from memory of allocate. It reports whether it was that.
func (p *private) free(memory []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arenas {
		if !bounds.Contains(bounds.Address(a.memory), uint64(len(a.memory)), bounds.Address(memory), 1) {
			continue
		}
		offset := int(bounds.Address(memory) - bounds.Address(a.memory))
		length, live := a.places.drop(offset)
		if live {
			a.giveBack(offset, length)
		}
		return live
	}
	return false
}

// giveBack takes the pages from a piece, which reads as zeros then, and keeps it. What
// the system does not take back, such as locked pages, is cleared.
func (a *arena) giveBack(offset, length int) {
	if err := unix.Madvise(a.memory[offset:offset+length], unix.MADV_DONTNEED); err != nil {
		clear(a.memory[offset : offset+length])
	}
	a.places.keep(extent{offset, length})
}

// retire frees everything when the last device has been closed. A goroutine that is
// late finds its addresses, without anything of anyone's, until owner is unreachable,
// or in use again.
func (p *private) retire(owner *Fabric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arenas {
		for offset := range a.places.live {
			length, _ := a.places.drop(offset)
			a.giveBack(offset, length)
		}
		a.unmap = runtime.AddCleanup(owner, func(memory []byte) { _ = unmap(memory) }, a.memory)
	}
}

// revive takes retire back: there is a device again.
func (p *private) revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arenas {
		a.unmap.Stop()
	}
}
