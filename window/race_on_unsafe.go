//go:build race

package window

import (
	"runtime"
	"unsafe"
)

// raceOrder tells the race detector of the order that stripe locks bring, which are in
// memory that it does not look at: the elements of windows made by Create are in memory
// that it does. Sound because the detector takes the address for a name only.
type raceOrder struct {
	name byte
	// of is what has the name, if this has not.
	of *raceOrder
}

func (o *raceOrder) named() unsafe.Pointer {
	if o.of != nil {
		return unsafe.Pointer(&o.of.name)
	}
	return unsafe.Pointer(&o.name)
}

// orderedAs has this be about the memory of another.
func (o *raceOrder) orderedAs(other *raceOrder) { o.of = other }

func (o *raceOrder) tookStripe()   { runtime.RaceAcquire(o.named()) }
func (o *raceOrder) givingStripe() { runtime.RaceReleaseMerge(o.named()) }
