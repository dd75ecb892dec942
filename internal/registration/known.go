package registration

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// known are the Regions that are found by their memory.
type known struct {
	// mu is held to replace the Regions. A look-up loads the pointer only.
	mu      sync.Mutex
	regions atomic.Pointer[knownRegions]
}

// knownRegions are Regions in the order of their addresses, which never change, and the Region of the last look-up: the next one
// is mostly for the same.
type knownRegions struct {
	all  []*Region
	last atomic.Pointer[Region]
}

func first(r *Region) uint64 { return bounds.Address(r.memory) }

// change replaces the Regions. Look-ups go on meanwhile.
func (k *known) change(change func([]*Region) []*Region) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var regions []*Region
	if before := k.regions.Load(); before != nil {
		regions = slices.Clone(before.all)
	}
	k.regions.Store(&knownRegions{all: change(regions)})
}

func (k *known) add(r *Region) {
	k.change(func(regions []*Region) []*Region {
		i := sort.Search(len(regions), func(i int) bool { return first(regions[i]) > first(r) })
		return slices.Insert(regions, i, r)
	})
}

func (k *known) remove(r *Region) {
	k.change(func(regions []*Region) []*Region {
		return slices.DeleteFunc(regions, func(other *Region) bool { return other == r })
	})
}

// find returns a Region that has all of memory and grants these rights, or nil.
func (k *known) find(memory []byte, access verbs.Access) *Region {
	known := k.regions.Load()
	if known == nil {
		return nil
	}
	if r := known.last.Load(); r != nil && r.grants(memory, access) {
		return r
	}
	address := bounds.Address(memory)
	i := sort.Search(len(known.all), func(i int) bool { return first(known.all[i]) > address })
	for i--; i >= 0; i-- {
		if r := known.all[i]; r.grants(memory, access) {
			known.last.Store(r)
			return r
		}
	}
	return nil
}
