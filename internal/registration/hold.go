package registration

import "github.com/onesided/rma/verbs"

// A Hold is a registration in use by a request: a region that is kept, or one that is for this request alone. The zero value holds
// nothing.
type Hold struct {
	kept *kept
	once verbs.MemoryRegion
	// memory is what a kept region does not keep alive.
	memory []byte
}

// Key returns the key that names the memory in requests of the card.
func (h *Hold) Key() uint32 {
	if h.kept != nil {
		return h.kept.region.LKey()
	}
	return h.once.LKey()
}

// Holds reports whether there is something to release.
func (h *Hold) Holds() bool { return h.kept != nil || h.once != nil }

// Release ends the use, once, when every request that has the Key has completed. It may deregister memory, and takes no lock of
// its caller.
func (h *Hold) Release() {
	switch {
	case h.kept != nil:
		h.kept.release()
	case h.once != nil:
		_ = h.once.Deregister()
	}
	*h = Hold{}
}
