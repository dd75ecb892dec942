//go:build !linux || race

package shm

import (
	"context"
	"fmt"
	"sync"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// maxHeap bounds an allocation of the Go heap, which cannot refuse one that the
// machine does not have.
const maxHeap = 64 << 30

// private is the memory of a fabric, of the Go heap: the race detector sees only that,
// and other systems have no need of more. What is freed the collector keeps for who
// still uses it.
type private struct {
	mu   sync.Mutex
	live map[uint64][]byte
}

// reserve gives n zeroed bytes. What the machine has not free is refused here: pages are the Go heap's affair.
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
