package hashtable

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/window"
)

var (
	// ErrFull: no slot or no record space is left for a new entry or value.
	ErrFull = errors.New("full")
	// ErrKind: the entry is a counter and the operation is on bytes, or the other
	// way round.
	ErrKind = errors.New("wrong kind of value")
	// ErrTooLong: key and value are longer than MaxEntryBytes.
	ErrTooLong = errors.New("entry too long")
	// ErrConfig: a Config that is not allowed.
	ErrConfig = errors.New("invalid configuration")
	// ErrMismatch: ranks passed different Configs to New.
	ErrMismatch = errors.New("ranks disagree")
	// ErrClosed: the table is closed.
	ErrClosed = errors.New("table is closed")
	// ErrCorrupt: the window has contents that no operation of this package leaves.
	ErrCorrupt = errors.New("contents are not a table's")
)

// An OpError is an operation that failed, having changed nothing unless its cause says
// that a rank or the caller's context ended meanwhile.
type OpError struct {
	// Op is the method's name, Rank the owner of Key.
	Op, Key string
	Rank    int
	// Cause is one of this package's errors or one of package window.
	Cause error
}

// longestQuote is how much of a key an error quotes.
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

// Unwrap gives the cause.
func (e *OpError) Unwrap() error { return e.Cause }

// A FullError says what ran out. It is an ErrFull.
type FullError struct {
	// Rank has no room.
	Rank int
	// Need, Used and Capacity are record bytes if Slots is false. If it is true
	// they count slots: the entry needs one of Used slots, which are all taken, of
	// the rank's Capacity.
	Slots                bool
	Need, Used, Capacity int
}

func (e *FullError) Error() string {
	if e.Slots {
		return fmt.Sprintf("%v: the %d slots that the key may have are taken; rank %d has %d (Config.Slots)", ErrFull, e.Used, e.Rank, e.Capacity)
	}
	return fmt.Sprintf("%v: the entry needs %d record bytes, rank %d has used %d of %d (Config.RecordBytes)", ErrFull, e.Need, e.Rank, e.Used, e.Capacity)
}

// Is makes it an ErrFull.
func (e *FullError) Is(target error) bool { return target == ErrFull }

// checkContext refuses a call that may wait without a context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: nil context", window.ErrArgument)
	}
	return nil
}
