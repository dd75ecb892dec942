// Package bounds checks addresses for devices: where memory is, and whether a request of a peer stays within it.
//
//	if !bounds.Contains(bounds.Address(memory), uint64(len(memory)), address, n) {
//		return verbs.StatusRemoteAccess
//	}
//
// Addresses are numbers that are only compared with each other and never become pointers again. They stay valid for
// memory that does not move: memory outside the Go heap, or referenced memory on it.
package bounds

import _ "github.com/onesided/rma/internal/platform"
