package window

import (
	"fmt"

	"github.com/onesided/rma/scheduler"
)

// An Option changes how a window is made. Every rank passes the same options;
// ranks that disagree get a *MismatchError at creation.
type Option func(*settings) error

type settings struct {
	singleElement bool
	sameOp        bool
	unordered     bool
	immediate     bool
	cardAtomics   bool
	sparse        bool
	slots         int
	seats         int
	// readOnly is of the end of a client's.
	readOnly bool
	scheme   scheduler.Scheme
}

// defaultNotifications is how many notification slots a window has.
const defaultNotifications = 16

// maxNotifications is the most that [Notifications] takes.
const maxNotifications = 1 << 16

// SingleElement promises that every operation of the accumulate family on the
// window is of one element, but for NoOp, which reads. They are then applied by the
// processor's atomic instructions instead of under a lock (elements of 16 bytes,
// and windows of Create, stay under locks). A longer one is refused with ErrHint.
func SingleElement() Option {
	return func(s *settings) error { s.singleElement = true; return nil }
}

// SameOp promises that all accumulates on the window between two
// synchronizations use one operation, or NoOp or CompareAndSwap beside it. The first operation decides
// for the life of the window; another one is refused with ErrHint.
func SameOp() Option {
	return func(s *settings) error { s.sameOp = true; return nil }
}

// Unordered gives up the program order of accumulates from one origin to one
// location. On mapped memory they are applied in program order all the same.
func Unordered() Option {
	return func(s *settings) error { s.unordered = true; return nil }
}

// Immediate has every operation of the accumulate family on mapped memory applied
// when its call returns. Without it, accumulates of one element to parts of 1 MiB
// and more are held back, a few at a time, so that the fetches of their elements
// overlap: at random places that takes less than half the time. They are applied
// by the next call on the window that has to complete them, that they have to come
// before, or that blocks. A rank that waits elsewhere, in a World.Barrier, and keeps its
// accumulates back from one that polls for them, should Flush first.
func Immediate() Option {
	return func(s *settings) error { s.immediate = true; return nil }
}

// Sparse has Allocate only reserve the memory of a window: each page is backed when it is first touched, by any
// rank. A page is of 4 KiB, or of 2 MiB where the system has such. It is for windows of which little is ever used, and may be
// larger than what the machine has free. When a page is touched that the machine does not have, the process is killed. RDMA
// cards that pin memory back all of it when it is registered.
func Sparse() Option {
	return func(s *settings) error { s.sparse = true; return nil }
}

// Without leaves ways out in which operations on ranks that share no memory are arranged.
// It is for measuring what they bring.
func Without(ways scheduler.Scheme) Option {
	return func(s *settings) error { s.scheme &^= ways; return nil }
}

// Notifications sets the number of notification slots, 0 to maxNotifications.
func Notifications(n int) Option {
	return func(s *settings) error {
		if n < 0 || n > maxNotifications {
			return fmt.Errorf("window: Notifications(%d): %w: allowed are 0 to %d", n, ErrArgument, maxNotifications)
		}
		s.slots = n
		return nil
	}
}

// MaxSeats is the most that [Seats] takes.
const MaxSeats = 1 << 12

// Seats has the window be served to as many clients of each rank at once: see [Serve].
func Seats(n int) Option {
	return func(s *settings) error {
		if n < 0 || n > MaxSeats {
			return fmt.Errorf("window: Seats(%d): %w: allowed are 0 to %d", n, ErrArgument, MaxSeats)
		}
		s.seats = n
		return nil
	}
}
