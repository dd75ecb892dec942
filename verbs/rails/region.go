package rails

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// A region has a region on each rail.
type region struct {
	device *device
	rails  []verbs.MemoryRegion
	// lkeys are the local keys on the rails.
	lkeys  []uint32
	extent bounds.Extent
	access verbs.Access
	// requesters are the queue pairs whose peers know the region's keys. They are in the order of sending, so that runs
	// in virtual time are reproducible.
	requesters []*queuePair
	closed     bool
}

// regions are the regions of a device. Keys are those of rail 0.
type regions struct {
	byLKey, byRKey map[uint32]*region
	// old has the keys of ended regions that peers may remember, with the number of these peers.
	old map[uint32]int
}

func (t *regions) init() {
	t.byLKey, t.byRKey, t.old = make(map[uint32]*region), make(map[uint32]*region), make(map[uint32]int)
}

const remoteRights = verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// RegisterMemory makes memory known to all rails.
func (d *device) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	if d.closed.Load() {
		return nil, d.closedError("RegisterMemory")
	}
	r := &region{device: d, extent: bounds.Of(memory), access: access}
	first, err := d.registerFirst(memory, access)
	if err != nil {
		return nil, of(0, err)
	}
	r.rails, r.lkeys = append(r.rails, first), append(r.lkeys, first.LKey())
	for i, rail := range d.rails[1:] {
		other, err := rail.RegisterMemory(memory, access)
		if err != nil {
			return nil, errors.Join(of(i+1, err), r.deregister())
		}
		r.rails, r.lkeys = append(r.rails, other), append(r.lkeys, other.LKey())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.regions.byLKey[first.LKey()] = r
	if access&remoteRights != 0 {
		d.regions.byRKey[first.Remote().RKey] = r
	}
	return r, nil
}

// registerFirst registers memory on rail 0, with a key that no peer remembers for another region.
func (d *device) registerFirst(memory []byte, access verbs.Access) (first verbs.MemoryRegion, err error) {
	var passed []verbs.MemoryRegion
	for {
		first, err = d.rails[0].RegisterMemory(memory, access)
		if err != nil || !d.remembered(first.Remote().RKey) {
			break
		}
		passed = append(passed, first)
	}
	for _, other := range passed {
		err = errors.Join(err, other.Deregister())
	}
	if err != nil && first != nil {
		err = errors.Join(err, first.Deregister())
	}
	return first, err
}

func (d *device) remembered(key uint32) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.regions.old[key] > 0
}

// LKey returns the key of rail 0.
func (r *region) LKey() uint32 { return r.lkeys[0] }

// Remote returns the region of rail 0.
func (r *region) Remote() verbs.RemoteRegion { return r.rails[0].Remote() }

// Memory returns the registered memory.
func (r *region) Memory() []byte { return r.rails[0].Memory() }

// Deregister ends the region on all rails, and notifies the peers that have requested its keys.
func (r *region) Deregister() error {
	d := r.device
	d.mu.Lock()
	if r.closed {
		d.mu.Unlock()
		return fmt.Errorf("rails: region %#x: %w", r.LKey(), verbs.ErrClosed)
	}
	r.closed = true
	key := r.Remote().RKey
	if d.regions.byLKey[r.LKey()] == r {
		delete(d.regions.byLKey, r.LKey())
	}
	if d.regions.byRKey[key] == r {
		delete(d.regions.byRKey, key)
	}
	// This precedes Deregister of rail 0, which can then give the key to another region.
	if n := len(r.requesters); n > 0 {
		d.regions.old[key] += n
	}
	requesters := r.requesters
	r.requesters = nil
	d.mu.Unlock()
	err := r.deregister()
	for _, q := range requesters {
		q.retract(key)
	}
	return err
}

func (r *region) deregister() error {
	var errs []error
	for i, rail := range r.rails {
		if err := rail.Deregister(); err != nil {
			errs = append(errs, of(i, err))
		}
	}
	return errors.Join(errs...)
}

// release records that a peer has forgotten a key. The caller holds the device's mutex.
func (t *regions) release(key uint32) {
	if t.old[key]--; t.old[key] <= 0 {
		delete(t.old, key)
	}
}

// covers reports whether all segments are in regions of the device, with a right.
func (d *device) covers(segments []verbs.Segment, right verbs.Access) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range segments {
		s := &segments[i]
		if len(s.Memory) == 0 || s.LKey == d.attributes.ReservedLKey && s.LKey != 0 {
			continue
		}
		r := d.regions.byLKey[s.LKey]
		if r == nil || r.access&right != right || !r.extent.Holds(s.Memory) {
			return false
		}
	}
	return true
}

// part appends to list the bytes from from to to of segments, with the keys of a rail.
func (d *device) part(list, segments []verbs.Segment, from, to, rail int) []verbs.Segment {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range segments {
		s := segments[i]
		n := len(s.Memory)
		if from < n && to > 0 {
			s.Memory = s.Memory[max(from, 0):min(to, n)]
			if rail > 0 {
				s.LKey = d.lkey(s.LKey, rail)
			}
			list = append(list, s)
		}
		from, to = from-n, to-n
	}
	return list
}

// lkey returns the key of a rail for a key of rail 0, or 0 if the region is gone.
func (d *device) lkey(key uint32, rail int) uint32 {
	if key == d.attributes.ReservedLKey && key != 0 {
		return d.rails[rail].Attributes().ReservedLKey
	}
	if r := d.regions.byLKey[key]; r != nil {
		return r.lkeys[rail]
	}
	return 0
}
