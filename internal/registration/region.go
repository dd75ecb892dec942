package registration

import (
	"errors"
	"slices"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// RemoteRegions describe a Region to peers, by the kind of device over which they reach it. They have no pointers and may be
// sent to peers as they are.
type RemoteRegions [Kinds]verbs.RemoteRegion

// A Region is memory that is registered with each device of a rank. It keeps the memory alive.
type Region struct {
	regions [Kinds]verbs.MemoryRegion
	memory  []byte
	access  verbs.Access
	// known finds the Region by its memory; nil if none does.
	known *known
}

// Memory returns the registered memory.
func (r *Region) Memory() []byte { return r.memory }

// Key returns the key that names the Region in requests to the device of a kind, which the rank must have.
func (r *Region) Key(kind Kind) uint32 { return r.regions[kind].LKey() }

// Remote returns what peers need to access the Region.
func (r *Region) Remote() RemoteRegions {
	var remote RemoteRegions
	for kind, region := range r.regions {
		if region != nil {
			remote[kind] = region.Remote()
		}
	}
	return remote
}

// Deregister ends the Region on every device.
func (r *Region) Deregister() error { return errors.Join(r.deregister()...) }

// DeregisterRest is Deregister that returns no error for a device that has been closed.
func (r *Region) DeregisterRest() error {
	ended := func(err error) bool { return errors.Is(err, verbs.ErrClosed) }
	return errors.Join(slices.DeleteFunc(r.deregister(), ended)...)
}

// deregister is Deregister that returns the error of each device.
func (r *Region) deregister() (errs []error) {
	if r.known != nil {
		r.known.remove(r)
	}
	for _, region := range r.regions {
		if region != nil {
			errs = append(errs, region.Deregister())
		}
	}
	return errs
}

// grants reports whether the Region has all of memory and grants these rights.
func (r *Region) grants(memory []byte, access verbs.Access) bool {
	return r.access&access == access && bounds.Holds(r.memory, memory)
}

// Devices are the devices of a rank, nil where it has none of a kind.
type Devices [Kinds]verbs.Device

// Register registers memory with every device. Nothing finds the Region by its memory.
func (d Devices) Register(memory []byte, access verbs.Access) (*Region, error) {
	r := &Region{memory: memory, access: access}
	for kind, device := range d {
		if device == nil {
			continue
		}
		access := access
		if Kind(kind) == Shared {
			// Ranks that map the memory use atomics of their processors.
			access &^= verbs.RemoteAtomic
		}
		region, err := device.RegisterMemory(memory, access)
		if err != nil {
			return nil, errors.Join(err, r.Deregister())
		}
		r.regions[kind] = region
	}
	return r, nil
}

// RegisterMapped registers memory for the ranks that map it, which may read and write it, and for no others. Nothing finds
// the Region by its memory.
func (d Devices) RegisterMapped(memory []byte) (*Region, error) {
	for kind, device := range d {
		if _, maps := device.(verbs.Mapper); !maps {
			d[kind] = nil
		}
	}
	return d.Register(memory, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
}
