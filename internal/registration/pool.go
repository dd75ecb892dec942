package registration

import (
	"sync"

	"github.com/onesided/rma/verbs"
)

// A Pool has registered buffers of one length: for messages, or to copy through. When none is free it makes a slab of them, which is
// a single one if that is long, as a stage is. It never frees one. Its methods may be called from any goroutine, and under any lock
// that no device takes.
type Pool struct {
	devices Devices
	length  int

	mu sync.Mutex
	// most is the greatest number of buffers, 0 for no limit.
	most int
	free []Buffer
	// made is the number of buffers, taken the number of those that are not free.
	made, taken int
	// full is set when there is no memory for more.
	full bool
}

// A Buffer is a buffer of a Pool. The zero value is none.
type Buffer struct {
	// Memory is nil if there is no buffer.
	Memory []byte
	region *Region
	pool   *Pool
}

const (
	// Buffers are registered in slabs of slabBytes, or of slabBuffers buffers if that is more and none is longer than slabBytes.
	slabBuffers = 8
	slabBytes   = 64 << 10
	// Buffers are scarce if more than mostTaken are taken.
	mostTaken = 32
)

// Key returns the key that names the buffer in requests to the device of a kind, which the Pool must register with.
func (b *Buffer) Key(kind Kind) uint32 { return b.region.Key(kind) }

// Take returns a buffer, or none if all that there may be are taken. If buffers are scarce, the caller arranges to hear of the
// completion of each request that uses one. Otherwise a later completion that covers it is enough. Take returns an error if there
// is no memory for any buffer, or, without a limit, for more.
func (p *Pool) Take() (taken Buffer, scarce bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		if p.most > 0 && p.made >= p.most {
			return Buffer{}, true, nil
		}
		err := p.more()
		switch {
		case err != nil && p.most > 0 && p.made > 0:
			p.most = p.made
			return Buffer{}, true, nil
		case err != nil:
			return Buffer{}, false, err
		}
	}
	taken = p.pop()
	return taken, p.taken > mostTaken || p.most > 0 && 2*p.taken > p.most, nil
}

// takeSpare is Take for a caller that can wait. If there is no memory for more buffers, it leaves half of them to callers that
// cannot, and returns none. Buffers are always scarce.
func (p *Pool) takeSpare() (taken Buffer, scarce bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if 2*p.taken >= p.made {
		if p.full {
			return Buffer{}, true, nil
		}
		if err := p.more(); err != nil {
			if p.made == 0 {
				return Buffer{}, false, err
			}
			p.full = true
			return Buffer{}, true, nil
		}
	}
	return p.pop(), true, nil
}

// pop takes a free buffer. It is called with the mutex.
func (p *Pool) pop() Buffer {
	last := len(p.free) - 1
	taken := p.free[last]
	p.free = p.free[:last]
	p.taken++
	return taken
}

// more makes a slab of buffers.
func (p *Pool) more() error {
	n := max(slabBytes/p.length, 1)
	if p.length <= slabBytes {
		n = max(n, slabBuffers)
	}
	slab := make([]byte, n*p.length)
	region, err := p.devices.Register(slab, verbs.LocalWrite)
	if err != nil {
		return err
	}
	for i := range n {
		p.free = append(p.free, Buffer{slab[i*p.length:][:p.length:p.length], region, p})
	}
	p.made += n
	return nil
}

// Release gives the buffer back, when every request that uses it has completed. The Buffer is none then.
func (b *Buffer) Release() {
	p, released := b.pool, *b
	*b = Buffer{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, released)
	p.taken--
}
