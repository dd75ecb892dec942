package job

import (
	"fmt"

	"github.com/onesided/rma/internal/errtext"
)

// Ranks that come to one number of a Meeting by different calls are told so by what tells them that the others have come:
// beside the number goes which calls those have made that it speaks for. Where these differ the meeting goes on, so that
// all hear of it, and ends with a MeetingError on every rank.

// A called says by which call ranks have come to a Meeting: one that they all have made, with one of them, or
// two that differ, each with a rank that has made it. It is 0 where calls are not compared.
//
// From the lowest bit on it has a call and its rank, and then, if there is one, the other with its own.
type called uint64

const calledBits = callBits + rankBits

func calledBy(call uint8, rank int) called {
	if call == 0 {
		return 0
	}
	return called(call) | called(rank)<<callBits
}

// differ reports whether it has two calls.
func (c called) differ() bool { return c>>calledBits != 0 }

func (c called) call() uint8 { return uint8(c) }
func (c called) rank() int   { return int(c >> callBits & (1<<rankBits - 1)) }

// and is what both say together: two calls that differ are in the order of their ranks.
func (c called) and(d called) called {
	switch {
	case c.differ() || !d.differ() && c.call() == d.call():
		return c
	case d.differ():
		return d
	case c.rank() < d.rank():
		return c | d<<calledBits
	}
	return d | c<<calledBits
}

// A MeetingError says that two ranks, of which the first is the lower one, have come to a Meeting by different
// calls. It is an ErrMismatch. Every rank has one.
type MeetingError struct {
	// Op is this rank's call, and Number that of the meeting.
	Op     string
	Number uint32
	Ranks  [2]int
	Calls  [2]uint8
}

func (e *MeetingError) Error() string {
	return fmt.Sprintf("%s: %v: rank %d has come to number %d by call %d, rank %d by call %d", errtext.Call("world", e.Op), ErrMismatch, e.Ranks[0], e.Number, e.Calls[0], e.Ranks[1], e.Calls[1])
}

// Is makes it an ErrMismatch.
func (e *MeetingError) Is(target error) bool { return target == ErrMismatch }

// compared is the error of a meeting to which ranks have come by calls that differ.
func compared(op string, number uint32, all called) error {
	if !all.differ() {
		return nil
	}
	other := all >> calledBits
	return &MeetingError{Op: op, Number: number, Ranks: [2]int{all.rank(), other.rank()}, Calls: [2]uint8{all.call(), other.call()}}
}

// note has this rank counted among those that have made a call: whoever counts the last one looks.
func (b callers) note(call uint8, rank int) {
	if call != 0 {
		b.last(call).Store(uint32(rank) + 1)
	}
}

// all is which calls were noted.
func (b callers) all() (all called) {
	for call := uint8(1); call < MostCalls; call++ {
		if rank := b.last(call).Load(); rank != 0 {
			made := calledBy(call, int(rank-1)&(1<<rankBits-1))
			if all == 0 {
				all = made
			}
			all = all.and(made)
		}
	}
	return all
}

// clear forgets them, before anybody can come to the next number.
func (b callers) clear() {
	for call := uint8(1); call < MostCalls; call++ {
		if last := b.last(call); last.Load() != 0 {
			last.Store(0)
		}
	}
}
