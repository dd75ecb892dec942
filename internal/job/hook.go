package job

import (
	"time"

	"github.com/onesided/rma/aggregate/reduce"
)

// An Event is something that a rank has done, for a hook: an operation on a window, or a call that others have a part
// in, such as Fence or Barrier.
type Event struct {
	// Call is the name of the method: Put, CompareAndSwap, Flush.
	Call string
	// Rank did it, by its number in the job.
	Rank int
	// Begun and Ended are on the clock of Now. An operation is issued at Ended; a mapped one has been applied then.
	Begun, Ended time.Duration
	// Operation reports whether the event is an operation. Target and the fields after it describe that.
	Operation bool
	// Window is the number of the window, the same on all ranks, and 0 of a call that is not one of a window.
	Window uint32
	// Target and Displacement are where Count elements are, of Bytes bytes in all.
	Target, Displacement, Count, Bytes int
	// Op is that of an accumulate.
	Op reduce.Op
	// Mapped reports whether this rank's processor applied the operation.
	Mapped bool
}

// WithHook sets a function that is called after each operation and each call that may wait.
func WithHook(hook func(*Event)) Option { return func(s *Settings) { s.hook = hook } }

// WithDebug makes windows look for misuse that otherwise goes unnoticed.
func WithDebug() Option { return func(s *Settings) { s.debug = true } }

// Debugs tells whether windows look for misuse.
func (w *World) Debugs() bool { return w.settings.debug }

// Hook is that of WithHook, nil if there is none.
func (w *World) Hook() func(*Event) { return w.settings.hook }
