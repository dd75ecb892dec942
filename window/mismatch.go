package window

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/job"
)

// Fence and Close are the collective calls of a window that come to its meeting, which tells them apart: a rank that makes one
// more or one less of them than others would else end its Fence by a Close, or by a Fence after which another epoch is open.

// callClose and callFence are calls of the meeting: callFence and those after it are Fences with the assertions
// that all ranks have to pass alike.
const (
	callClose uint8 = 1 + iota
	callFence
)

const alikeAsserts = NoPrecede | NoSucceed

// fenceCall is the call of a Fence. alikeAsserts are the lowest bits.
func fenceCall(assert Assert) uint8 { return callFence + uint8(assert&alikeAsserts) }

// meetingCallName is how a call of the meeting is written in a program.
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

// mismatch is the error of a call in which ranks have met that made other ones, nil if err is another.
func (c *core) mismatch(ctx context.Context, call string, err error) *MismatchError {
	if err == nil {
		return nil
	}
	var met *job.MeetingError
	if !errors.As(err, &met) {
		return nil
	}
	made := func(i int) string { return meetingCallName(met.Calls[i]) + c.placeOf(ctx, met.Ranks[i]) }
	return &MismatchError{Call: call, Number: met.Number, Rank: met.Ranks[1], Value: made(1), WantRank: met.Ranks[0], Want: made(0)}
}

// placeBytes is how long the text of a place may be, which is cut at its beginning.
const placeBytes = 4 * lineBytes

// longestAsk bounds how long another rank is asked for the place of its call.
const longestAsk = 10 * time.Second

// notePlace notes, if misuse is looked for, where this rank calls what has a number in the meeting: for others, who look only
// when they have met it there by mistake.
func (c *core) notePlace(number uint32) {
	if c.watch == nil || c.watch.debug == nil || c.watch.debug.placed == number {
		// A Fence that goes on has its place already, and others may be looking.
		return
	}
	c.watch.debug.placed = number
	site := here()
	text := site.String()
	place := c.own.control.place()
	clear(place[copy(place, text[max(len(text)-len(place), 0):]):])
}

// placeOf is where a rank has made the call that this one has met by mistake, as far as both look for misuse.
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
	if text, _, _ := bytes.Cut(place, []byte{0}); len(text) > 0 {
		return fmt.Sprintf(" at %s", text)
	}
	return ""
}
