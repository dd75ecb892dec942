package window

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/onesided/rma/epoch"
)

// ErrMisuse means that the program broke a rule of windows in a way that only world.WithDebug notices.
var ErrMisuse = errors.New("misuse")

// A MisuseError reports two calls that conflict. It is an [ErrMisuse].
type MisuseError struct {
	// What describes the misuse.
	What string
	// First and Second are the calls, in this order, each with its place in the program, as in "Put at a.go:10".
	First, Second string
	// FirstRank and SecondRank are the ranks that made the calls.
	FirstRank, SecondRank int
}

func (e *MisuseError) Error() string {
	return fmt.Sprintf("window: %v: %s: %s of rank %d, and %s of rank %d", ErrMisuse, e.What, e.First, e.FirstRank, e.Second, e.SecondRank)
}

// Is reports whether target is [ErrMisuse].
func (e *MisuseError) Is(target error) bool { return target == ErrMisuse }

// debugging finds misuse of a window from records of what was issued. It finds misuse of two kinds, and not all of it:
//
//   - Conflicting operations of one epoch on the same bytes: one is a put, or one is a get and the other changes the
//     bytes by the accumulate family. The operations are those of this rank, and of other ranks that are goroutines of
//     this process.
//   - Misuse of local memory: two results in the same memory; a put from memory before its result has arrived; an origin
//     that changes before its put is complete.
//
// An operation that a flush or an unlock has completed conflicts with none. Neither does a get whose result has
// arrived, nor an operation of another Fence epoch. A PutNotify is compared with the incomplete operations before it,
// and no later operation with it: its target may have learned that it is complete.
//
// If the result of an operation on a mapped target is there at once, its memory holds poison until the call that
// completes the operation. Operations with a Request, whose buffers are complete on their own, are left out of the
// second kind.
//
// Operations of one kind on the same bytes are recorded once, and so are puts from the same memory. So records are
// bounded by the memory that operations touch, and are found by address. The time of an epoch grows in proportion to
// its operations. An operation may be missed if another goroutine completes earlier operations on the same bytes while
// it is issued.
type debugging struct {
	mu sync.Mutex
	// origins and results have the buffers in use by this rank's operations, by target and address. No two results
	// overlap.
	origins, results map[int]*index[*buffer]
	uses             uint64
	// generation counts the calls of RFlush so far. The request of an RFlush does not complete what was used after it.
	generation uint64
	// callers has each caller once, for records to share.
	callers map[caller]*caller
	// beyond has the accesses to ranks of other processes, and to parts whose memory is gone.
	beyond map[int]*accesses
	// openers has the last call that opened an epoch of each kind and target.
	openers map[epoch.Opening]caller
	// placed is the number in the barrier of the last call whose place was recorded. The call in progress owns it.
	placed uint32
}

// A caller is a call of a rank with its place.
type caller struct {
	rank int
	call string
	site site
}

// String returns the call with its place.
func (c *caller) String() string { return c.call + " at " + c.site.String() }

// A site is the call stack of a call.
type site [8]uintptr

func here() (s site) {
	runtime.Callers(3, s[:])
	return s
}

// String returns the first place outside of this package.
func (s *site) String() string {
	frames := runtime.CallersFrames(s[:])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, packagePath) || strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d", frame.File, frame.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

const packagePath = "github.com/onesided/rma/window."

func (c *caller) clash(what string, first *caller) error {
	return &MisuseError{What: what, First: first.String(), FirstRank: first.rank, Second: c.String(), SecondRank: c.rank}
}

// completed is called at the end of a call that completes operations on target, or on all targets if target is -1. The
// buffers belong to the program again. Operations that read are complete at the target, and if all is set, so are the
// others. completed returns an error if the program has changed a buffer.
func (c *core) completed(call string, target int, all bool) error {
	return c.completedOf(call, target, all, lastGeneration)
}

// lastGeneration is a generation after all others.
const lastGeneration = math.MaxUint64

// completedOf is completed for what was used up to and including a generation.
func (c *core) completedOf(call string, target int, all bool, generation uint64) error {
	if c.watch == nil || c.watch.debug == nil {
		return nil
	}
	return c.complete(call, target, all, generation)
}

// nextGeneration begins a generation, and returns the one that ends.
func (c *core) nextGeneration() uint64 {
	if c.watch == nil || c.watch.debug == nil {
		return 0
	}
	d := c.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	d.generation++
	return d.generation - 1
}

func (c *core) complete(call string, target int, all bool, generation uint64) error {
	d, second := c.watch.debug, caller{rank: c.rank, call: call, site: here()}
	var changed *buffer
	d.mu.Lock()
	for _, b := range take(d.origins, target, generation) {
		if (b.changed || maphash.Bytes(seed, b.memory) != b.sum) && (changed == nil || b.used < changed.used) {
			changed = b
		}
	}
	var written *buffer
	for _, b := range take(d.results, target, generation) {
		if !b.giveBack() && (written == nil || b.used < written.used) {
			written = b
		}
	}
	d.mu.Unlock()
	c.retire(target, generation, all)
	if changed != nil {
		return second.clash("the memory that a put writes from was changed before the operation was complete", changed.caller)
	}
	if written != nil {
		return second.clash("memory that an operation reads into was changed before the operation was complete", written.caller)
	}
	return nil
}

// opened records a call that has opened an epoch, of one target, or -1 if it has no target of its own.
func (c *core) opened(call string, target int) { c.openedAs(call, call, target) }

// openedAs is opened for a call whose epoch package epoch knows by another.
func (c *core) openedAs(opening, call string, target int) {
	if c.watch == nil || c.watch.debug == nil {
		return
	}
	d, by := c.watch.debug, caller{rank: c.rank, call: call, site: here()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.openers[epoch.Opening{Call: opening, Target: target}] = by
}

// whoOpened returns the calls that have opened the open epochs. The caller holds the mutex of epochs.
func (c *core) whoOpened() string {
	if c.watch == nil || c.watch.debug == nil {
		return ""
	}
	var calls []string
	d := c.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	for opening := range c.epochs.Opened() {
		if by, known := d.openers[opening]; known && !slices.Contains(calls, by.String()) {
			calls = append(calls, by.String())
		}
	}
	return strings.Join(calls, ", ")
}
