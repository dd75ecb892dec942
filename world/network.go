package world

import "github.com/onesided/rma/verbs"

// openNetwork opens the device that reaches every rank.
func openNetwork(o opening, s settings) (verbs.Device, error) {
	if s.network != nil {
		return s.network(o.rank)
	}
	return nil, &verbs.CapabilityError{Device: "tcp", Capability: "be opened", Reason: "it is not part of this build"}
}
