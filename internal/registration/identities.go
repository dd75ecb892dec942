package registration

import (
	"math"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/regcache"
)

// identities give buffers addresses in virtual time that depend only on what the program does. Go's addresses differ from run to
// run, and the collector decides which of them are used again: no two runs of a simulation would be the same. So each object gets
// addresses of its own. Distant parts of an object are like parts of two, until a buffer has something of both.
//
// Identities are kept for objects that are alive. No buffer is part of a dead one.
type identities struct {
	known *regcache.Cache[*identity]
	// next is the first address of the next object. At sweep identities, those of dead objects are forgotten.
	next  uint64
	sweep int
}

// An identity is that of memory of an object. Its address is the program's address and more.
type identity struct {
	object object.Object
	more   uint64
}

func (i *identity) alive() bool { return i.object.Alive() != nil }

const (
	// identitySpace is the number of addresses of an object. The memory that is known of it first is in the middle.
	identitySpace = 1 << 36
	firstSweep    = 1 << 10
)

func newIdentities() *identities {
	return &identities{known: regcache.New[*identity](regcache.Limits{Bytes: math.MaxUint64, Regions: math.MaxInt}), next: identitySpace, sweep: firstSweep}
}

// of returns the address of a buffer. Memory outside of Go's heap, which the collector never frees, has its own.
func (i *identities) of(memory []byte) uint64 {
	from := bounds.Address(memory)
	to := from + uint64(len(memory))
	if e := i.known.Find(from, to); e != nil {
		i.known.Release(e)
		if e.Region.alive() {
			return from + e.Region.more
		}
	}
	id := new(identity)
	var ok bool
	if id.object, ok = object.Of(memory, func(struct{}) {}, struct{}{}); !ok {
		return from
	}
	i.known.Prune(from, to, (*identity).alive)
	// What is left and overlaps is of the same object.
	first, last := i.known.Cover(from, to)
	if e := i.known.Find(first, first+1); e != nil {
		i.known.Release(e)
		id.more = e.Region.more
	} else {
		id.more = i.next + identitySpace/2 - first
		i.next += identitySpace
	}
	i.known.Release(i.known.Add(first, last, id))
	if i.known.Stats().Regions > i.sweep {
		i.known.Prune(0, math.MaxUint64, (*identity).alive)
		i.sweep = max(2*i.known.Stats().Regions, firstSweep)
	}
	i.end()
	return from + id.more
}

// end frees the identities that were replaced or forgotten.
func (i *identities) end() {
	for {
		id, some := i.known.Ended()
		if !some {
			return
		}
		id.object.Stop()
	}
}
