package shm

import (
	"fmt"
	"math/rand/v2"
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

// Deregister ends the region, for peers first: with its slot another region gets its entry in the table that they read.
func (r *region) Deregister() error {
	r.device.retract(r)
	if !r.device.regions.remove(r) {
		return fmt.Errorf("shm: region %#x: %w", r.key, verbs.ErrClosed)
	}
	return nil
}

// A key has the slot in the table in its low bits and random bits above. So a guessed key is hardly a region's, and a
// stale key is not that of the next region in its slot.
const (
	slotBits   = 14
	maxRegions = 1 << slotBits
	keysOfSlot = 1 << (32 - slotBits)
)

// regionTable holds a device's regions by the slot in their key.
type regionTable struct {
	mu    sync.RWMutex
	slots []*region
	// free are the unused slots, as the last keys that contained them.
	free []uint32
}

func (t *regionTable) add(r *region) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var last uint32
	switch n := len(t.free); {
	case n > 0:
		last = t.free[n-1]
		t.free = t.free[:n-1]
	case len(t.slots) < maxRegions:
		last = uint32(len(t.slots))
		t.slots = append(t.slots, nil)
	default:
		return &verbs.CapabilityError{Device: r.device.name, Capability: "register another region", Reason: fmt.Sprintf("it has %d already", maxRegions)}
	}
	r.key = nextKey(last, rand.Uint32())
	t.slots[r.key%maxRegions] = r
	return nil
}

// nextKey returns the key that follows last in its slot. random chooses it among the slot's other keys, none of which
// is 0 above the slot.
func nextKey(last, random uint32) uint32 {
	above := 1 + random%(keysOfSlot-2)
	if above >= last>>slotBits {
		above++
	}
	return above<<slotBits | last%maxRegions
}

func (t *regionTable) remove(r *region) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	slot := r.key % maxRegions
	if int(slot) >= len(t.slots) || t.slots[slot] != r {
		return false
	}
	t.slots[slot] = nil
	t.free = append(t.free, r.key)
	return true
}

func (t *regionTable) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots, t.free = nil, nil
}

// find returns the region of a key, or nil.
func (t *regionTable) find(key uint32) *region {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if slot := key % maxRegions; int(slot) < len(t.slots) {
		if r := t.slots[slot]; r != nil && r.key == key {
			return r
		}
	}
	return nil
}

// hold reports whether every segment lies in the region it names, with the right.
func (t *regionTable) hold(segments []verbs.Segment, right verbs.Access) bool {
	for i := range segments {
		s := &segments[i]
		if len(s.Memory) == 0 {
			continue
		}
		r := t.find(s.LKey)
		if r == nil || r.access&right != right || !r.extent.Holds(s.Memory) {
			return false
		}
	}
	return true
}

// remoteRights are the rights that open a region to peers.
const remoteRights = verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
