//go:build race

package raceorder

import (
	"runtime"
	"unsafe"
)

// order is what all order goes through. Sound because the detector takes the address for a name
// only.
var order byte

// BeforeTelling is called before others are told.
func BeforeTelling() { runtime.RaceReleaseMerge(unsafe.Pointer(&order)) }

// AfterHearing is called when others have been heard.
func AfterHearing() { runtime.RaceAcquire(unsafe.Pointer(&order)) }
