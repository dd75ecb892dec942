//go:build !linux

package shm

import (
	"runtime"

	"github.com/onesided/rma/verbs"
)

// SetKey does nothing on this system; it is for Linux.
func (d *Device) SetKey([]byte) {}

// Descriptors is for Linux only.
func Descriptors(int) int { return 0 }

// Open is for Linux only.
func Open(Options) (*Device, error) {
	return nil, &verbs.CapabilityError{Device: deviceName, Capability: "share memory between processes", Reason: "that needs Linux, this is " + runtime.GOOS + "; ranks of one process work (NewFabric)"}
}
