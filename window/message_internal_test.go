package window

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

var kindOfInt64 = uint8(reduce.KindOf[int64]())

// run is a run of one operation of a packet, whether such a run exists or not.
func run(kind aggregate.Kind, op Op, element uint8, size int, offset uint64, operand int) []byte {
	b := []byte{byte(kind), byte(op), element, 0}
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint64(b, offset)
	return append(b, slices.Repeat([]byte{7}, operand)...)
}

// nonsense is what a rank may send that keeps no rules: to a part of 10 elements of 8
// bytes, with 16 slots.
var nonsense = []struct {
	name    string
	message job.Message
	payload []byte
	// asked tells that something is asked for.
	asked bool
}{
	{"put past the end", packetMessage, run(aggregate.Put, 0, 0, 8, 73, 8), false},
	{"put far past the end", packetMessage, run(aggregate.Put, 0, 0, 16, 1<<64-8, 16), false},
	{"get past the end", packetMessage, run(aggregate.Get, 0, 0, 16, 72, 0), true},
	{"get of more than a message holds", packetMessage, run(aggregate.Get, 0, 0, 1<<15, 0, 0), true},
	{"put of which a part is missing", packetMessage, run(aggregate.Put, 0, 0, 16, 0, 8), false},
	{"put of which more is there", packetMessage, run(aggregate.Put, 0, 0, 8, 0, 12), false},
	{"accumulate past the end", packetMessage, run(aggregate.Accumulate, Sum, kindOfInt64, 8, 80, 8), false},
	{"accumulate of half an element", packetMessage, run(aggregate.Accumulate, Sum, kindOfInt64, 12, 0, 16), false},
	{"accumulate at an odd offset", packetMessage, run(aggregate.Accumulate, Sum, kindOfInt64, 8, 4, 8), false},
	{"accumulate of no kind", packetMessage, run(aggregate.Accumulate, Sum, 200, 8, 0, 8), false},
	{"accumulate by no operation", packetMessage, run(aggregate.Accumulate, 99, kindOfInt64, 8, 0, 8), false},
	{"bits of floats", packetMessage, run(aggregate.Accumulate, And, uint8(reduce.KindOf[float64]()), 8, 0, 8), false},
	{"fetch of more than is given", packetMessage, run(aggregate.Fetch, Sum, kindOfInt64, 24, 0, 8), true},
	{"swap of one operand", packetMessage, run(aggregate.Swap, 0, kindOfInt64, 8, 0, 8), true},
	{"swap past the end", packetMessage, run(aggregate.Swap, 0, kindOfInt64, 8, 80, 16), true},
	{"swap of two elements", packetMessage, run(aggregate.Swap, 0, kindOfInt64, 16, 0, 32), true},
	{"notification of no slot", packetMessage, run(aggregate.Notify, 0, 0, 0, 16, 0), false},
	{"notification of a slot that wraps", packetMessage, run(aggregate.Notify, 0, 0, 0, 1<<63, 0), false},
	{"an operation of no kind", packetMessage, run(200, 0, 0, 8, 0, 8), false},
	{"a packet that is no run", packetMessage, []byte("short"), false},
	{"a word that is not the sender's", job.Message{Kind: messageWord, A: sharedAt, X: 1}, nil, false},
	{"a word of another pair", job.Message{Kind: messageWord, A: 64 + postAt, X: 1}, nil, false},
	{"a word too long", job.Message{Kind: messageWord, A: postAt, X: 1 << 32}, nil, false},
	{"a lock of no kind", job.Message{Kind: messageLock, A: 9}, nil, false},
	{"a lock of a kind and no use", job.Message{Kind: messageLock, A: uint8(Shared), B: 2}, nil, false},
	{"an answer that comes with no lock", job.Message{Kind: messageGranted, X: 1}, make([]byte, 8), false},
	{"a complete of an epoch far ahead", job.Message{Kind: messageComplete, Z: 3}, nil, false},
	{"a complete of an epoch that has ended", job.Message{Kind: messageComplete}, nil, false},
	{"an unlock of no kind", job.Message{Kind: messageUnlock}, nil, false},
	{"an unlock without a lock", job.Message{Kind: messageUnlock, A: uint8(Exclusive), X: 1}, nil, false},
	{"no such kind", job.Message{Kind: 255}, nil, false},
}

var packetMessage = job.Message{Kind: messagePacket}

// anything takes any answer.
type anything struct{}

func (anything) Answered([]byte) bool { return true }
func (anything) Refused()             {}

var sendNonsense = jobtest.Register("nonsense", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 10)
	if err != nil {
		return err
	}
	before := append([]byte(nil), win.core.own.block[pairsAt:]...)
	err = w.Barrier(ctx)
	if w.Rank() == 0 {
		p, e := win.core.peer(1)
		if e != nil {
			return e
		}
		for _, n := range nonsense {
			n.message.Service = win.core.number
			if n.asked {
				err = errors.Join(err, p.link.AskFor(ctx, &n.message, n.payload, anything{}))
			} else {
				err = errors.Join(err, p.link.Tell(&n.message, n.payload))
			}
			var refused *job.RejectionError
			if e := p.link.Flush(ctx); !errors.As(e, &refused) {
				err = errors.Join(err, fmt.Errorf("%s: error is %v, want a refusal", n.name, e))
			}
		}
	}
	err = errors.Join(err, w.Barrier(ctx))
	if string(before) != string(win.core.own.block[pairsAt:]) {
		err = errors.Join(err, errors.New("words of the control block have changed"))
	}
	for i, element := range win.Local() {
		if element != 0 {
			err = errors.Join(err, fmt.Errorf("element %d has become %d", i, element))
		}
	}
	return errors.Join(err, win.Fence(ctx), win.Fence(ctx, NoSucceed), win.Close())
})

// TestNonsense sends messages that no rank which keeps the rules would: each is refused,
// changes nothing, and what follows is served.
func TestNonsense(t *testing.T) { jobtest.Apart(t, 2, sendNonsense) }

// wishTwice has rank 0 ask for a lock while it waits for one: a rank has one wish, or it
// could fill the other's memory with them.
var wishTwice = jobtest.Register("wishing twice", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 10)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		err = win.Lock(ctx, Exclusive, 1)
		err = errors.Join(err, w.Barrier(ctx), w.Barrier(ctx), win.Unlock(ctx, 1))
		return errors.Join(err, w.Barrier(ctx), win.Close())
	}
	p, err := win.core.peer(1)
	if err != nil {
		return err
	}
	err = w.Barrier(ctx)
	err = errors.Join(err, p.deferred.askLock(ctx, Exclusive), p.link.Flush(ctx))
	err = errors.Join(err, p.link.Tell(&job.Message{Kind: messageLock, Service: win.core.number, A: uint8(Exclusive), X: 77}, nil))
	var refused *job.RejectionError
	if e := p.link.Flush(ctx); !errors.As(e, &refused) {
		err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
	}
	err = errors.Join(err, w.Barrier(ctx), p.deferred.awaitLock(ctx, "Lock"))
	operationErr, failed := p.deferred.tellUnlock(ctx)
	err = errors.Join(err, operationErr, failed)
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestWishTwice(t *testing.T) { jobtest.Apart(t, 2, wishTwice) }
