//go:build !linux || race

package shm

import (
	"context"
	"fmt"
	"sync"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// maxHeap bounds an allocation of the Go heap, which ends the process if the machine does not have the memory.
const maxHeap = 64 << 30

// private is the memory of a fabric, from the Go heap: the race detector sees only that, and other systems need no
// more. The garbage collector keeps freed memory while it is still used.
type private struct {
	mu   sync.Mutex
	live map[uint64][]byte
}

// reserve returns n zeroed bytes. It returns an error if the machine does not have them; the Go heap provides the
// pages.
func (p *private) reserve(n int) ([]byte, error) {
	if n > maxHeap {
		return nil, fmt.Errorf("%w: at most %d bytes can be allocated at once", verbs.ErrMemory, maxHeap)
	}
	if err := checkMemory(n); err != nil {
		return nil, err
	}
	align := pageBytes
	if n >= hugePageBytes {
		align = hugePageBytes
	}
	memory := make([]byte, n+align)
	skip := int(-bounds.Address(memory) & uint64(align-1))
	memory = memory[skip : skip+n : skip+n]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live == nil {
		p.live = make(map[uint64][]byte)
	}
	p.live[bounds.Address(memory)] = memory
	return memory, nil
}

func (p *private) back(_ context.Context, memory []byte) (int, error) { return len(memory), nil }

func (p *private) free(memory []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, live := p.live[bounds.Address(memory)]
	delete(p.live, bounds.Address(memory))
	return live
}

func (p *private) retire(*Fabric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.live)
}

func (p *private) revive() {}
