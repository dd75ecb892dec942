package world

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/bounds"
)

// registered are the regions that this rank's program has made, by their addresses: what is
// in one of them a card takes as it is, where it would need a registration else.
type registered struct {
	mu      sync.Mutex
	regions atomic.Pointer[[]*Region]
}

func first(r *Region) uint64 { return bounds.Address(r.Memory()) }

// change replaces the regions, which those who look for one read meanwhile.
func (k *registered) change(change func([]*Region) []*Region) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var regions []*Region
	if before := k.regions.Load(); before != nil {
		regions = slices.Clone(*before)
	}
	regions = change(regions)
	k.regions.Store(&regions)
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
	regions := k.regions.Load()
	if regions == nil {
		return nil
	}
	address := bounds.Address(memory)
	i := sort.Search(len(*regions), func(i int) bool { return first((*regions)[i]) > address })
	for i--; i >= 0; i-- {
		r := (*regions)[i]
		if r.access&access == access && bounds.Holds(r.Memory(), memory) {
			return r
		}
	}
	return nil
}
