package window

import (
	"context"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/job"
)

// Fence and Close are the collective calls that wait in the barrier of a window. The barrier compares the calls.
// Otherwise a rank that calls Fence once more or once less than the others could end its Fence by another rank's Close.
// Or it could end it by a Fence that opens another epoch.

// callClose and callFence are the calls that the barrier compares. callFence and the numbers after it are Fences with
// the assertions that all ranks must pass alike.
const (
	callClose uint8 = 1 + iota
	callFence
)

const alikeAsserts = NoPrecede | NoSucceed

// fenceCall returns the call of a Fence. The bits of alikeAsserts are the lowest ones.
func fenceCall(assert Assert) uint8 { return callFence + uint8(assert&alikeAsserts) }

// meetingCallName returns a call of the barrier as a program writes it.
func meetingCallName(call uint8) string {
	switch {
	case call == callClose:
		return "Close"
	case call == callFence:
		return "Fence"
	case call > callFence && call <= callFence+uint8(alikeAsserts):
		return fmt.Sprintf("Fence(%v)", Assert(call-callFence))
	}
	return fmt.Sprintf("call %d", call)
}

// mismatch returns the error of a call in which ranks disagree, or nil if err is another error.
func (c *core) mismatch(ctx context.Context, call string, err error) *MismatchError {
	met := job.Mismatched(err)
	if met == nil {
		return nil
	}
	return &MismatchError{
		Call: call, Number: met.Number,
		Rank: met.Ranks[1], Value: meetingCallName(met.Calls[1]), Place: c.placeOf(ctx, met.Ranks[1]),
		WantRank: met.Ranks[0], Want: meetingCallName(met.Calls[0]), WantPlace: c.placeOf(ctx, met.Ranks[0]),
	}
}

// placeBytes is the maximum length of the text of a place. A longer text loses its beginning.
const placeBytes = 4 * lineBytes

// longestAsk bounds the wait for the place of another rank's call.
const longestAsk = 10 * time.Second

// notePlace records, in debug mode, the place of this rank's call with a number in the barrier. Other ranks read it
// only after a mismatch.
func (c *core) notePlace(number uint32) {
	if c.watch == nil || c.watch.debug == nil || c.watch.debug.placed == number {
		// A continued Fence has recorded its place, and other ranks may be reading it.
		return
	}
	c.watch.debug.placed = number
	site := here()
	place := sourcePlaceOf(&site)
	copy(c.own.control.place(), place[:])
}

// A sourcePlace is the text of a place, and then zeros.
type sourcePlace [placeBytes]byte

func sourcePlaceOf(s *site) (place sourcePlace) {
	text := s.String()
	copy(place[:], text[max(len(text)-len(place), 0):])
	return place
}

// placeOf returns the place of a rank's call that does not match this rank's call. It returns "" unless both ranks are
// in debug mode.
func (c *core) placeOf(ctx context.Context, rank int) string {
	if c.watch == nil || c.watch.debug == nil || rank >= c.size {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, longestAsk)
	defer cancel()
	if c.world.Approach(ctx, "window", rank) != nil {
		return ""
	}
	p, err := c.peer(rank)
	if err != nil {
		return ""
	}
	place := make([]byte, placeBytes)
	if p.control.base != nil {
		copy(place, p.control.place())
	} else if p.link.Ask(ctx, &job.Message{Kind: messagePlace, Service: c.number}, nil, place) != nil || p.link.Flush(ctx, c.number) != nil {
		return ""
	}
	return text(place)
}
