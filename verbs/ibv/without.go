//go:build !ibverbs || !cgo || !linux

package ibv

import "github.com/onesided/rma/verbs"

// Open opens a device. In this program it always returns a *verbs.CapabilityError.
func Open(Options) (verbs.Device, error) {
	return nil, &verbs.CapabilityError{
		Device: deviceName, Capability: "be opened",
		Reason: "this program was built without it; build it for Linux with cgo and -tags ibverbs, where libibverbs and its headers are installed (libibverbs-dev, rdma-core-devel)",
	}
}
