package tcp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// region is a memory region of this device.
type region struct {
	device *device
	extent bounds.Extent
	// memory is nil if the region is weak.
	memory []byte
	access verbs.Access
	key    uint32

	// use is held for reading while memory is accessed for a peer, and for writing to set dead. No goroutine holds the
	// locks of two regions, or waits for another lock while it holds one.
	use  sync.RWMutex
	dead bool
}

func newRegion(d *device, memory []byte, access verbs.Access) *region {
	r := &region{device: d, extent: bounds.Of(memory), access: access}
	if access&verbs.Weak == 0 {
		r.memory = memory
	}
	return r
}

// LKey returns the key, which is also the remote key.
func (r *region) LKey() uint32   { return r.key }
func (r *region) Memory() []byte { return r.memory }

// Remote returns the region for peers. Its address is the address in this process.
func (r *region) Remote() verbs.RemoteRegion {
	return verbs.RemoteRegion{Address: r.extent.First, Length: r.extent.Length, RKey: r.key}
}

// Deregister ends the region. It waits for a peer's request that is accessing the memory. After it returns, no request
// accesses the memory.
func (r *region) Deregister() error {
	if !r.device.regions.remove(r) {
		return fmt.Errorf("tcp: region %#x: %w", r.key, verbs.ErrClosed)
	}
	r.end()
	return nil
}

func (r *region) end() {
	r.use.Lock()
	r.dead = true
	r.use.Unlock()
}

// keep holds the memory until release if the region is alive, and reports whether it is.
func (r *region) keep() bool {
	r.use.RLock()
	if r.dead {
		r.use.RUnlock()
		return false
	}
	return true
}

// hold is keep, and returns n bytes at address, which are within the region.
func (r *region) hold(address uint64, n int) ([]byte, bool) {
	if !r.keep() {
		return nil, false
	}
	offset := address - r.extent.First
	return r.memory[offset : offset+uint64(n) : offset+uint64(n)], true
}

func (r *region) release() { r.use.RUnlock() }

// reservedLKey names any memory of this process.
const reservedLKey = 1

// maxRegions bounds the table, so that keys stay few among 2^32 and hard to guess.
const maxRegions = 1 << 16

// regionTable holds a device's regions by key. A key is 32 random bits, so that no key reveals another.
type regionTable struct {
	mu     sync.RWMutex
	byKey  map[uint32]*region
	closed bool
}

func (t *regionTable) add(r *region) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return r.device.closedError("RegisterMemory")
	}
	if len(t.byKey) == maxRegions {
		return &verbs.CapabilityError{Device: deviceName, Capability: "register another region", Reason: fmt.Sprintf("it has %d already", maxRegions)}
	}
	for {
		var random [4]byte
		_, _ = rand.Read(random[:]) // it never fails
		r.key = binary.LittleEndian.Uint32(random[:])
		if _, taken := t.byKey[r.key]; !taken && r.key > reservedLKey {
			break
		}
	}
	t.byKey[r.key] = r
	return nil
}

func (t *regionTable) remove(r *region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey[r.key] != r {
		return false
	}
	delete(t.byKey, r.key)
	return true
}

// close ends all regions.
func (t *regionTable) close() {
	t.mu.Lock()
	regions := t.byKey
	t.byKey, t.closed = nil, true
	t.mu.Unlock()
	for _, r := range regions {
		r.end()
	}
}

func (t *regionTable) find(key uint32) *region {
	t.mu.RLock()
	r := t.byKey[key]
	t.mu.RUnlock()
	return r
}

// reach returns the region for a peer's request of n bytes, n above 0.
func (t *regionTable) reach(key uint32, address uint64, n int, right verbs.Access) *region {
	r := t.find(key)
	if r == nil || r.access&right != right || !bounds.Contains(r.extent.First, r.extent.Length, address, uint64(n)) {
		return nil
	}
	return r
}

// covers reports whether every segment lies in the region it names, with the right.
func (t *regionTable) covers(segments []verbs.Segment, right verbs.Access) bool {
	for i := range segments {
		s := &segments[i]
		if len(s.Memory) == 0 || s.LKey == reservedLKey {
			continue
		}
		r := t.find(s.LKey)
		if r == nil || r.access&right != right || !r.extent.Holds(s.Memory) {
			return false
		}
	}
	return true
}
