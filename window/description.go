package window

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/onesided/rma/world"
)

// description is what the ranks tell each other of their parts. It has no
// pointers and is exchanged as it is.
type description struct {
	call  uint32
	kind  uint32
	hints uint32
	slots uint32
	// process tells processes apart.
	process uint64
	bytes   uint64
	// alignment of the memory, in its rank's address space.
	alignment uint32
	data      world.Places
	control   world.Places
	reach     reach
	failed    bool
	// unsupported: the failure is an errors.ErrUnsupported.
	unsupported bool
	failure     [320]byte
}

// process is this process, among those of a job.
var process = rand.Uint64()

// fail notes why the part cannot be had.
func (d *description) fail(cause error, text string) {
	d.failed = true
	d.unsupported = errors.Is(cause, errors.ErrUnsupported)
	d.failure = [len(d.failure)]byte{}
	copy(d.failure[:], text)
}

// A toldError is another rank's error.
type toldError struct {
	text        string
	unsupported bool
}

func (e *toldError) Error() string { return e.text }

func (e *toldError) Is(target error) bool { return e.unsupported && target == errors.ErrUnsupported }

const (
	hintSingleElement = 1 << iota
	hintSameOp
	hintUnordered
	hintImmediate
)

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
	d.control = p.regions[0].Places()
	if len(p.regions) > 1 {
		d.data = p.regions[1].Places()
	}
}

func (s *settings) bits() uint32 {
	var bits uint32
	if s.singleElement {
		bits |= hintSingleElement
	}
	if s.sameOp {
		bits |= hintSameOp
	}
	if s.unordered {
		bits |= hintUnordered
	}
	if s.immediate {
		bits |= hintImmediate
	}
	return bits
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
