//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"sync"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// region is a registration with the card. It references its memory until it ends, unless it is weak.
type region struct {
	device *device
	extent bounds.Extent
	// bytes is nil if the region is weak.
	bytes  []byte
	access verbs.Access
	memory memory
	// key is the local key, rkey the key for peers.
	key, rkey uint32
	// address is where peers find the region. empty is memory that is registered in place of an empty region.
	address uint64
	empty   []byte
}

// RegisterMemory registers memory with the card.
func (d *device) RegisterMemory(bytes []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	if wrong := access.Check(); wrong != "" {
		return nil, d.argumentError("RegisterMemory: %s", wrong)
	}
	if uint64(len(bytes)) > d.limits.region {
		return nil, &verbs.CapabilityError{Device: d.attributes.Name, Capability: fmt.Sprintf("register %s", errtext.Count(len(bytes), "byte")),
			Reason: fmt.Sprintf("its regions have at most %d", d.limits.region)}
	}
	if access&verbs.RemoteAtomic != 0 && !d.limits.atomics {
		return nil, &verbs.CapabilityError{Device: d.attributes.Name, Capability: "register memory for atomics", Reason: "the card has none"}
	}
	r := &region{device: d, extent: bounds.Of(bytes), access: access}
	place, rights := bytes, access&^verbs.Weak
	if access&verbs.Weak == 0 {
		r.bytes = bytes
	}
	if len(bytes) == 0 {
		r.empty = make([]byte, 8)
		place, rights = r.empty, 0
	}
	r.address = bounds.Address(place)
	d.regions.mu.Lock()
	defer d.regions.mu.Unlock()
	if d.regions.closed {
		return nil, d.closedError("RegisterMemory")
	}
	var err error
	if r.memory, err = d.card.register(place, rights, d.onDemand); err != nil {
		return nil, d.refused(fmt.Sprintf("registering %s", errtext.Count(len(bytes), "byte")), err)
	}
	r.key, r.rkey = r.memory.lkey(), r.memory.rkey()
	d.regions.byKey[r.key] = r
	return r, nil
}

// LKey returns the card's local key.
func (r *region) LKey() uint32 { return r.key }

// Memory returns the registered memory.
func (r *region) Memory() []byte { return r.bytes }

// Remote returns the region for peers.
func (r *region) Remote() verbs.RemoteRegion {
	return verbs.RemoteRegion{Address: r.address, Length: r.extent.Length, RKey: r.rkey}
}

// Deregister ends the region. After it returns, the card does not access the memory.
func (r *region) Deregister() error {
	t := &r.device.regions
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey[r.key] != r {
		return fmt.Errorf("ibv: %s: region %#x: %w", r.device.name, r.key, verbs.ErrClosed)
	}
	delete(t.byKey, r.key)
	return r.end()
}

func (r *region) end() error {
	if err := r.memory.deregister(); err != nil {
		return r.device.refused("deregistering memory", err)
	}
	return nil
}

// regionTable holds a device's regions by their local key.
type regionTable struct {
	mu     sync.RWMutex
	byKey  map[uint32]*region
	closed bool
}

// hold reports whether segments are in the regions that they name, and these allow local writes.
func (t *regionTable) hold(segments []verbs.Segment) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range segments {
		s := &segments[i]
		if len(s.Memory) == 0 {
			continue
		}
		if r := t.byKey[s.LKey]; r == nil || r.access&verbs.LocalWrite == 0 || !r.extent.Holds(s.Memory) {
			return false
		}
	}
	return true
}

// close ends all regions.
func (t *regionTable) close() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.byKey {
		if e := r.end(); e != nil {
			err = e
		}
	}
	t.byKey, t.closed = nil, true
	return err
}
