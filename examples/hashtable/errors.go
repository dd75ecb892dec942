package hashtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/window"
)

var (
	// ErrFull reports that no slot or no record space is left for a new entry or value.
	ErrFull = errors.New("full")
	// ErrKind reports an operation on bytes whose entry is a counter, or the reverse.
	ErrKind = errors.New("wrong kind of value")
	// ErrTooLong reports a key and value that are together longer than MaxEntryBytes.
	ErrTooLong = errors.New("entry too long")
	// ErrConfig reports a Config that is not allowed.
	ErrConfig = errors.New("invalid configuration")
	// ErrMismatch reports that ranks passed different Configs to New.
	ErrMismatch = errors.New("ranks disagree")
	// ErrClosed reports that the table is closed.
	ErrClosed = errors.New("table is closed")
	// ErrCorrupt reports window contents that no operation of this package writes.
	ErrCorrupt = errors.New("contents are not a table's")
)

// An OpError is the error of one operation. The operation has changed nothing, unless Cause is the failure of a rank
// or the end of the caller's context.
type OpError struct {
	// Op is the name of the method. Rank is the owner of Key.
	Op, Key string
	Rank    int
	// Cause is an error of this package or of package window.
	Cause error
}

// longestQuote is the number of bytes of a key that an error quotes.
const longestQuote = 60

func (e *OpError) Error() string {
	key, more := e.Key, ""
	if len(key) > longestQuote {
		key, more = key[:longestQuote], "…"
	}
	instead := ""
	if errors.Is(e.Cause, ErrKind) {
		switch e.Op {
		case opNames[opGet], opNames[opPut]:
			instead = "; read it by Count"
		case opNames[opCount], opNames[opAdd]:
			instead = "; read it by Get"
		}
	}
	return fmt.Sprintf("hashtable: %s of %q%s at rank %d: %v%s", e.Op, key, more, e.Rank, e.Cause, instead)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Cause }

// A FullError says what ran out. It matches ErrFull.
type FullError struct {
	// Rank is the rank that has no room.
	Rank int
	// Need, Used and Capacity are bytes of record space if Slots is false. If Slots is true they are numbers of
	// slots. The entry needs one of the rank's Capacity slots, and Used of them are taken.
	Slots                bool
	Need, Used, Capacity int
}

func (e *FullError) Error() string {
	if e.Slots {
		return fmt.Sprintf("%v: the %d slots that the key may have are taken; rank %d has %d (Config.Slots)", ErrFull, e.Used, e.Rank, e.Capacity)
	}
	return fmt.Sprintf("%v: the entry needs %d record bytes, rank %d has used %d of %d (Config.RecordBytes)", ErrFull, e.Need, e.Rank, e.Used, e.Capacity)
}

// Is reports whether target is ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// checkContext returns an error if a call that may wait has no context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: nil context", window.ErrArgument)
	}
	return nil
}
