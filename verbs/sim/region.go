package sim

import (
	"fmt"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// A region is a memory region. Peers know it by an address that the device assigned, and not by that of its memory,
// which changes from run to run.
type region struct {
	device *Device
	extent bounds.Extent
	// memory is nil if the region is weak.
	memory []byte
	access verbs.Access
	key    uint32
	base   uint64
}

func newRegion(d *Device, memory []byte, access verbs.Access) *region {
	r := &region{device: d, extent: bounds.Of(memory), access: access}
	if access&verbs.Weak == 0 {
		r.memory = memory
	}
	return r
}

// LKey returns the key, which is also the remote key.
func (r *region) LKey() uint32 { return r.key }

// Memory returns the registered memory.
func (r *region) Memory() []byte { return r.memory }

// Remote returns the region for peers.
func (r *region) Remote() verbs.RemoteRegion {
	return verbs.RemoteRegion{Address: r.base, Length: r.extent.Length, RKey: r.key}
}

// Deregister ends the region.
func (r *region) Deregister() error {
	d := r.device
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	if !d.sim.dying() {
		d.sim.settle()
	}
	if d.sim.dying() || !d.regions.remove(r) {
		return fmt.Errorf("sim: region %#x: %w", r.key, verbs.ErrClosed)
	}
	p := &d.sim.profile
	d.charge(Deregistered, p.Deregister+p.DeregisterPage*pages(int(r.extent.Length)), int(r.extent.Length))
	return nil
}

// A key has the slot in the table in its low bits and random bits above, so that a stale or guessed key is not another
// region's.
const (
	slotBits   = 14
	maxRegions = 1 << slotBits
)

// regions has a device's regions by the slot in their key.
type regions struct {
	slots []*region
	free  []uint32
	// next is the address of the next region.
	next uint64
}

func (t *regions) add(r *region) error {
	var slot uint32
	switch n := len(t.free); {
	case n > 0:
		slot = t.free[n-1]
		t.free = t.free[:n-1]
	case len(t.slots) < maxRegions:
		slot = uint32(len(t.slots))
		t.slots = append(t.slots, nil)
	default:
		return &verbs.CapabilityError{Device: r.device.sim.attributes.Name, Capability: "register another region", Reason: fmt.Sprintf("it has %d already", maxRegions)}
	}
	r.key = r.device.sim.random.Uint32()<<slotBits | slot
	if r.key>>slotBits == 0 {
		r.key |= 1 << slotBits
	}
	// Words of the memory are aligned for peers too, and there is an unused page between regions.
	r.base = t.next + r.extent.First%8
	t.next += (r.extent.Length+8+pageBytes-1)&^(pageBytes-1) + pageBytes
	t.slots[slot] = r
	return nil
}

func (t *regions) remove(r *region) bool {
	slot := r.key % maxRegions
	if int(slot) >= len(t.slots) || t.slots[slot] != r {
		return false
	}
	t.slots[slot] = nil
	t.free = append(t.free, slot)
	return true
}

// find returns the region of a key, or nil.
func (t *regions) find(key uint32) *region {
	if slot := key % maxRegions; int(slot) < len(t.slots) {
		if r := t.slots[slot]; r != nil && r.key == key {
			return r
		}
	}
	return nil
}

// hold reports whether every segment lies in the region it names, with the right.
func (t *regions) hold(segments []verbs.Segment, right verbs.Access) bool {
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

// reach returns n bytes at an address for a peer, or nil if key, range or right are wrong.
func (t *regions) reach(address uint64, n int, key uint32, right verbs.Access) []byte {
	r := t.find(key)
	if r == nil || r.access&right == 0 || !bounds.Contains(r.base, r.extent.Length, address, uint64(n)) {
		return nil
	}
	at := address - r.base
	return r.memory[at : at+uint64(n)]
}
