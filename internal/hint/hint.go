// Package hint holds the settings of one window, which its options change.
package hint

import "github.com/onesided/rma/scheduler"

// A Set is the settings of a window.
type Set struct {
	// SingleElement, SameOp, Unordered, Immediate, CardAtomics and Sparse are the options of package window of these names.
	SingleElement, SameOp, Unordered, Immediate, CardAtomics, Sparse bool
	// Slots is the number of notification slots. Seats bounds how many clients may be attached to a rank's part at
	// once.
	Slots, Seats int
	// ReadOnly is set at both ends of a client's window if the window is served read-only.
	ReadOnly bool
	// Scheme has the schemes by which the window arranges operations.
	Scheme scheduler.Scheme
}

// Without returns an option that leaves schemes out in one window, besides those that the tuning of the job leaves out.
// Ranks may leave out different schemes.
func Without(schemes scheduler.Scheme) func(*Set) error {
	return func(s *Set) error { s.Scheme &^= schemes; return nil }
}
