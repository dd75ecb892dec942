// Package bounds is what devices ask of the memory that they are given: where it is, and
// whether a request of a peer stays within it.
//
//	if !bounds.Contains(bounds.Address(memory), uint64(len(memory)), address, n) {
//		return verbs.StatusRemoteAccess
//	}
//
// Addresses are numbers that are compared with each other, and never become pointers again.
// They stay true of memory that does not move: outside the Go heap, or on it and referred to.
package bounds

import _ "github.com/onesided/rma/internal/platform"
