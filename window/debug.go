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

// ErrMisuse: a use of a window that the rules forbid and that goes unnoticed but for world.WithDebug.
var ErrMisuse = errors.New("misuse")

// A MisuseError names two calls that do not go together. It is an ErrMisuse.
type MisuseError struct {
	// What is wrong.
	What string
	// First and Second are the calls, in this order, with where they were made: "Put at a.go:10".
	First, Second string
	// FirstRank and SecondRank made them.
	FirstRank, SecondRank int
}

func (e *MisuseError) Error() string {
	return fmt.Sprintf("window: %v: %s: %s of rank %d, and %s of rank %d", ErrMisuse, e.What, e.First, e.FirstRank, e.Second, e.SecondRank)
}

// Is makes it an ErrMisuse.
func (e *MisuseError) Is(target error) bool { return target == ErrMisuse }

// debugging finds misuse of a window. It keeps what was issued and is not complete:
//
//   - Operations of one epoch that may not meet, because one is a put, or one a get and one changes the element by the
//     accumulate family: of this rank, and of others that are goroutines of this process. Operations that were
//     completed by a flush or an unlock meet no others, nor gets that have their results, nor those of two Fences. A put that notifies, which may be
//     known to be complete by what its target does, is compared with what is not complete, but nothing with it.
//   - Local memory: results that are asked for twice, or put from before they are there, and origins of puts that
//     have changed when the put completes. Where the result of an operation is there at once, because the
//     target is mapped, the program finds poison in its place until the call that completes it.
//
// Operations with a Request, whose buffers are complete by themselves, are left out of the second.
//
// Operations of one kind on the same bytes are kept once, and so are puts from the same memory: what is kept is bounded by
// what they touch, and what a new one meets is found by address. So an epoch takes time in proportion to its operations.
// Of an operation that one goroutine issues while another completes those before on the same bytes it may lose sight.
type debugging struct {
	mu sync.Mutex
	// origins and results are the buffers of this rank's operations that are in use, by target and address. No two results
	// meet.
	origins, results map[int]*index[*buffer]
	uses             uint64
	// generation counts the calls of RFlush so far. What is used behind one is not complete with it.
	generation uint64
	// callers are what has been used of them, each once.
	callers map[caller]*caller
	// beyond are the accesses to ranks of other processes, and to parts whose memory is gone.
	beyond map[int]*accesses
	// openers are the last calls that have opened epochs, of each kind and target.
	openers map[epoch.Opening]caller
	// placed is the last number of the meeting whose place was noted. The call at hand has it.
	placed uint32
}

// A caller is a call of a rank, with its place.
type caller struct {
	rank int
	call string
	site site
}

// String is the call with its place.
func (c *caller) String() string { return c.call + " at " + c.site.String() }

// A site is the call stack of a call.
type site [8]uintptr

func here() (s site) {
	runtime.Callers(3, s[:])
	return s
}

// String is the first place outside of this package.
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
	return &MisuseError{What: what + " before that is complete", First: first.String(), FirstRank: first.rank, Second: c.String(), SecondRank: c.rank}
}

// completed is called at the end of calls that complete operations on a target, or on all if that is -1: their buffers
// are the program's, and if all of it is set they are complete at the target, as those are that have read. It says what
// has become of the buffers.
func (c *core) completed(call string, target int, all bool) error {
	return c.completedOf(call, target, all, lastGeneration)
}

// lastGeneration is behind all.
const lastGeneration = math.MaxUint64

// completedOf is completed that completes what was used up to a generation.
func (c *core) completedOf(call string, target int, all bool, generation uint64) error {
	if c.watch == nil || c.watch.debug == nil {
		return nil
	}
	return c.complete(call, target, all, generation)
}

// nextGeneration begins another one, and gives the one that ends.
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
		return second.clash("the memory that a put writes from was changed", changed.caller)
	}
	if written != nil {
		return second.clash("memory that is read into was changed", written.caller)
	}
	return nil
}

// opened notes a call that has opened an epoch, of one target or of none by itself, which is -1.
func (c *core) opened(call string, target int) {
	if c.watch == nil || c.watch.debug == nil {
		return
	}
	d, by := c.watch.debug, caller{rank: c.rank, call: call, site: here()}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.openers[epoch.Opening{Call: call, Target: target}] = by
}

// whoOpened says which calls have opened the epochs that are open. It is called with the mutex of epochs.
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
