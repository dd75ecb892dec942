//go:build race

package window

import (
	"runtime"
	"unsafe"
)

// raceOrder tells the race detector the order that stripe locks make. The locks are in memory that the detector does
// not see, but it sees the elements of windows made by Create. Sound because the detector uses the address only as a
// name.
type raceOrder struct {
	name byte
	// of has the name, if it is not nil.
	of *raceOrder
}

func (o *raceOrder) named() unsafe.Pointer {
	if o.of != nil {
		return unsafe.Pointer(&o.of.name)
	}
	return unsafe.Pointer(&o.name)
}

// orderedAs makes this the order of another window's memory.
func (o *raceOrder) orderedAs(other *raceOrder) { o.of = other }

func (o *raceOrder) tookStripe()   { runtime.RaceAcquire(o.named()) }
func (o *raceOrder) givingStripe() { runtime.RaceReleaseMerge(o.named()) }
