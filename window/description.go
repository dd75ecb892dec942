package window

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// A description is what the ranks exchange about their parts. It has no pointers, and is sent as it is.
type description struct {
	call  uint32
	kind  uint32
	hints promises
	slots uint32
	seats uint32
	// process differs between processes.
	process uint64
	bytes   uint64
	// alignment is that of the memory in the address space of its rank.
	alignment uint32
	data      job.Places
	control   job.Places
	// tallies is set if counting fences suit the rank.
	tallies bool
	// ability is what the rank can do about CardAtomics.
	ability ability
	// failed is set if the rank has no part. Its failure then has the reason.
	failed bool
	// debugs is set if the rank looks for misuse.
	debugs bool
}

// A failure is a rank's own error as the ranks exchange it.
type failure struct {
	text [320]byte
	// unsupported is set if the error is an errors.ErrUnsupported.
	unsupported bool
}

// An exposure is what this rank keeps of another rank's description.
type exposure struct {
	bytes         uint64
	data, control verbs.RemoteRegion
	// card is the data as network cards reach it.
	card      verbs.RemoteRegion
	alignment uint32
}

// expose returns what this rank keeps of a description.
func (c *core) expose(rank int, d *description) exposure {
	return exposure{d.bytes, c.world.Place(rank, &d.data), c.world.Place(rank, &d.control), c.world.CardPlace(&d.data), d.alignment}
}

// process identifies this process among those of a job.
var process = rand.Uint64()

// failureOf returns an error as the ranks exchange it, the zero failure for nil.
func failureOf(err error) (f failure) {
	if err != nil {
		f.unsupported = errors.Is(err, errors.ErrUnsupported)
		copy(f.text[:], err.Error())
	}
	return f
}

// A toldError is an error of another rank.
type toldError struct {
	text        string
	unsupported bool
}

func (e *toldError) Error() string { return e.text }

func (e *toldError) Is(target error) bool { return e.unsupported && target == errors.ErrUnsupported }

// promises are the options of a window that all ranks pass alike, as a set. Bit i is the option promiseNames[i].
type promises uint32

var promiseNames = [...]string{"SingleElement", "SameOp", "Unordered", "Immediate", "CardAtomics", "Sparse"}

// String returns the names of the options, and the unknown bits as a number.
func (p promises) String() string {
	var names []string
	for i, name := range promiseNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := p &^ (1<<len(promiseNames) - 1); rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint32(rest)))
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, " and ")
}

func text(zeroEnded []byte) string {
	for i, b := range zeroEnded {
		if b == 0 {
			return string(zeroEnded[:i])
		}
	}
	return string(zeroEnded)
}

func (d *description) describe(p *part) {
	d.process = process
	d.bytes = uint64(len(p.memory))
	d.alignment = uint32(alignmentOf(p.memory))
	d.control = p.regions[0].Remote()
	if len(p.regions) > 1 {
		d.data = p.regions[1].Remote()
	}
}

// check returns an error if a part that another rank describes is impossible. The values may be anything. Lengths and
// displacements are computed from them, and words of the memory are read and written.
func (d *description) check(kind reduce.Kind) error {
	size := uint64(kind.Size())
	switch {
	case d.bytes > math.MaxInt || d.bytes%size != 0:
		return fmt.Errorf("%w: a part of %s, elements have %d", errDescription, errtext.Count(d.bytes, "byte"), size)
	case bits.OnesCount32(d.alignment) != 1 || d.bytes > 0 && uint64(d.alignment) < min(size, 8):
		return fmt.Errorf("%w: memory at a multiple of %s, elements have %d", errDescription, errtext.Count(d.alignment, "byte"), size)
	}
	for _, place := range d.data {
		if place.Length != 0 && place.Length != d.bytes {
			return fmt.Errorf("%w: a region of %s over a part of %d", errDescription, errtext.Count(place.Length, "byte"), d.bytes)
		}
	}
	return nil
}

// checkMapped returns an error if the mapped memory of a part is not what was described.
func (d *exposure) checkMapped(data []byte) error {
	if uint64(len(data)) != d.bytes || alignmentOf(data) < min(int(d.alignment), 8) {
		return fmt.Errorf("%w: a part of %s at a multiple of %d is %s at a multiple of %d", errDescription, errtext.Count(d.bytes, "byte"), d.alignment, errtext.Count(len(data), "byte"), alignmentOf(data))
	}
	return nil
}

// promisesOf returns the promises of a window with these settings.
func promisesOf(s *settings) promises {
	var bits promises
	for i, promised := range promiseFields(s) {
		if *promised {
			bits |= 1 << i
		}
	}
	return bits
}

// settings returns the settings of a window with these promises.
func (p promises) settings() (s settings) {
	for i, promised := range promiseFields(&s) {
		*promised = p&(1<<i) != 0
	}
	return s
}

// promiseFields returns the settings that are promises, in the order of promiseNames.
func promiseFields(s *settings) [len(promiseNames)]*bool {
	return [...]*bool{&s.SingleElement, &s.SameOp, &s.Unordered, &s.Immediate, &s.CardAtomics, &s.Sparse}
}

var calls = [...]string{"Allocate", "Create"}

func callNumber(call string) uint32 {
	for i, name := range calls {
		if name == call {
			return uint32(i)
		}
	}
	return uint32(len(calls))
}

func callName(number uint32) string {
	if int(number) < len(calls) {
		return calls[number]
	}
	return fmt.Sprintf("call %d", number)
}
