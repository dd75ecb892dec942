package job

import (
	"math"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/regcache"
)

// identities give buffers addresses in virtual time that depend on nothing but what the program does.
// Those that Go gives differ from run to run, and which of them are used again depends on when the
// collector runs: a simulation would not be the same twice. Here what is known of an object has its
// addresses, and another object has others. Parts of one that are apart are as parts of two, until a
// buffer has something of both.
//
// They are kept for what is alive: what is dead is not used again.
type identities struct {
	known *regcache.Cache[*identity]
	// next is the first address of the next object, sweep at how many the dead are forgotten.
	next  uint64
	sweep int
}

// An identity is of memory of an object. What is at an address of the program's is at that and more.
type identity struct {
	object object.Object
	more   uint64
}

func (i *identity) alive() bool { return i.object.Alive() != nil }

const (
	// identitySpace is what an object has: what is known first of it is in the middle.
	identitySpace = 1 << 36
	firstSweep    = 1 << 10
)

func newIdentities() *identities {
	return &identities{known: regcache.New[*identity](regcache.Limits{Bytes: math.MaxUint64, Regions: math.MaxInt}), next: identitySpace, sweep: firstSweep}
}

// of is the address of a buffer. What is of no object that the collector could take has its own.
func (i *identities) of(memory []byte) uint64 {
	from := bounds.Address(memory)
	to := from + uint64(len(memory))
	if e := i.known.Find(from, to); e != nil {
		i.known.Release(e)
		if e.Region.alive() {
			return from + e.Region.more
		}
	}
	who := new(identity)
	var ok bool
	if who.object, ok = object.Of(memory, func(struct{}) {}, struct{}{}); !ok {
		return from
	}
	i.known.Prune(from, to, (*identity).alive)
	// What overlaps is of the same object.
	first, last := i.known.Cover(from, to)
	if e := i.known.Find(first, first+1); e != nil {
		i.known.Release(e)
		who.more = e.Region.more
	} else {
		who.more = i.next + identitySpace/2 - first
		i.next += identitySpace
	}
	i.known.Release(i.known.Add(first, last, who))
	if i.known.Stats().Regions > i.sweep {
		i.known.Prune(0, math.MaxUint64, (*identity).alive)
		i.sweep = max(2*i.known.Stats().Regions, firstSweep)
	}
	i.end()
	return from + who.more
}

// end ends what is known no more.
func (i *identities) end() {
	for {
		who, some := i.known.Ended()
		if !some {
			return
		}
		who.object.Stop()
	}
}
