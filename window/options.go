package window

import (
	"fmt"

	"github.com/onesided/rma/internal/hint"
)

// An Option changes how a window is made. Every rank passes the same options. If ranks disagree,
// every rank gets a *MismatchError.
type Option func(*settings) error

type settings = hint.Set

// defaultNotifications is the number of notification slots of a window without the option Notifications.
const defaultNotifications = 16

// maxNotifications is the largest number that [Notifications] accepts.
const maxNotifications = 1 << 16

// SingleElement promises that every operation of the accumulate family on the window has one element; with NoOp it may
// have more. The processor then applies the operations by atomic instructions instead of under a lock. Elements of 16
// bytes, and windows of [Create], still use locks. A longer operation is rejected with an [ErrPromise].
func SingleElement() Option {
	return func(s *settings) error { s.SingleElement = true; return nil }
}

// SameOp promises that all accumulates on the window use one operation, apart from NoOp and CompareAndSwap. The first
// such accumulate of each rank decides for the life of the window. Another operation is rejected with an [ErrPromise].
func SameOp() Option {
	return func(s *settings) error { s.SameOp = true; return nil }
}

// Unordered gives up the program order of accumulates from one origin to one location. On mapped memory they are still
// applied in program order.
func Unordered() Option {
	return func(s *settings) error { s.Unordered = true; return nil }
}

// Immediate applies each operation of the accumulate family on mapped memory before its call returns.
//
// Without Immediate, a few accumulates of one element to parts of 1 MiB and more are deferred. The processor then
// fetches their elements at the same time, which is faster at scattered places. They are applied by the next call on
// the window that completes them, that must come after them in order, or that blocks. If another rank polls for
// accumulates of this one, complete them, for instance by Flush, before waiting elsewhere, such as in World.Barrier.
func Immediate() Option {
	return func(s *settings) error { s.Immediate = true; return nil }
}

// Sparse makes [Allocate] reserve the memory of the window only: each page is backed when any rank first touches it. A
// page has 4 KiB, or 2 MiB if the system has such pages.
//
// Sparse is for windows of which little is ever used. They may be larger than the free memory of the machine. If a
// touched page cannot be backed, the system kills the process. RDMA cards that pin memory back all of it when it is
// registered.
func Sparse() Option {
	return func(s *settings) error { s.Sparse = true; return nil }
}

// Notifications sets the number of notification slots, from 0 to 65536. The default is 16.
func Notifications(n int) Option {
	return func(s *settings) error {
		if n < 0 || n > maxNotifications {
			return fmt.Errorf("window: Notifications(%d): %w: allowed are 0 to %d", n, ErrArgument, maxNotifications)
		}
		s.Slots = n
		return nil
	}
}

// MaxSeats is the largest number that [Seats] accepts.
const MaxSeats = 1 << 12

// Seats sets the number of seats of each rank's part, from 0 to MaxSeats. A seat is one attachment of a client by
// [Attach]. The default is 0. A window without seats cannot be served: see [Serve].
func Seats(n int) Option {
	return func(s *settings) error {
		if n < 0 || n > MaxSeats {
			return fmt.Errorf("window: Seats(%d): %w: allowed are 0 to %d", n, ErrArgument, MaxSeats)
		}
		s.Seats = n
		return nil
	}
}
