package job

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// registered are the regions that this rank's program has made, by their addresses: what is
// in one of them a card takes as it is, where it would need a registration else.
type registered struct {
	mu      sync.Mutex
	regions atomic.Pointer[knownRegions]
}

// knownRegions are regions in the order of their addresses, and the last that was found: what is
// looked for next is mostly in the same one. They are replaced by others, so that it is one of them.
type knownRegions struct {
	all  []*Region
	last atomic.Pointer[Region]
}

func first(r *Region) uint64 { return bounds.Address(r.memory) }

// change replaces the regions, which those who look for one read meanwhile.
func (k *registered) change(change func([]*Region) []*Region) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var regions []*Region
	if before := k.regions.Load(); before != nil {
		regions = slices.Clone(before.all)
	}
	k.regions.Store(&knownRegions{all: change(regions)})
}

func (k *registered) add(r *Region) {
	k.change(func(regions []*Region) []*Region {
		i := sort.Search(len(regions), func(i int) bool { return first(regions[i]) > first(r) })
		return slices.Insert(regions, i, r)
	})
}

func (k *registered) remove(r *Region) {
	k.change(func(regions []*Region) []*Region {
		return slices.DeleteFunc(regions, func(other *Region) bool { return other == r })
	})
}

// find gives one that has all of memory and these rights, nil if there is none.
func (k *registered) find(memory []byte, access verbs.Access) *Region {
	known := k.regions.Load()
	if known == nil {
		return nil
	}
	if r := known.last.Load(); r != nil && r.holds(memory, access) {
		return r
	}
	address := bounds.Address(memory)
	i := sort.Search(len(known.all), func(i int) bool { return first(known.all[i]) > address })
	for i--; i >= 0; i-- {
		if r := known.all[i]; r.holds(memory, access) {
			known.last.Store(r)
			return r
		}
	}
	return nil
}

// holds tells whether the region has all of memory and these rights.
func (r *Region) holds(memory []byte, access verbs.Access) bool {
	return r.access&access == access && bounds.Holds(r.memory, memory)
}
