package window

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

var kindOfInt64 = uint8(reduce.KindOf[int64]())

// nonsense is what a rank may send that keeps no rules: to a part of 10 elements of 8
// bytes, with 16 slots.
var nonsense = []struct {
	name    string
	message world.Message
	payload int
	// answer is as long as what is asked for, -1 if nothing is.
	answer int
}{
	{"put past the end", world.Message{Kind: messagePut, X: 73}, 8, -1},
	{"put far past the end", world.Message{Kind: messagePut, X: 1<<64 - 8}, 16, -1},
	{"get past the end", world.Message{Kind: messageGet, X: 72, Y: 16}, 0, 16},
	{"get of a length that wraps", world.Message{Kind: messageGet, X: 8, Y: 1<<64 - 8}, 0, 8},
	{"accumulate past the end", world.Message{Kind: messageAccumulate, B: kindOfInt64, X: 80}, 8, -1},
	{"accumulate of half an element", world.Message{Kind: messageAccumulate, B: kindOfInt64}, 12, -1},
	{"accumulate at an odd offset", world.Message{Kind: messageAccumulate, B: kindOfInt64, X: 4}, 8, -1},
	{"accumulate of no kind", world.Message{Kind: messageAccumulate, B: 200}, 8, -1},
	{"accumulate by no operation", world.Message{Kind: messageAccumulate, A: 99, B: kindOfInt64}, 8, -1},
	{"bits of floats", world.Message{Kind: messageAccumulate, A: uint8(And), B: uint8(reduce.KindOf[float64]())}, 8, -1},
	{"fetch of more than is given", world.Message{Kind: messageFetch, B: kindOfInt64, Y: 3}, 8, 24},
	{"fetch of a count that wraps", world.Message{Kind: messageFetch, A: uint8(NoOp), B: kindOfInt64, Y: 1 << 61}, 0, 0},
	{"swap of one operand", world.Message{Kind: messageSwap, B: kindOfInt64}, 8, 8},
	{"swap past the end", world.Message{Kind: messageSwap, B: kindOfInt64, X: 80}, 16, 8},
	{"notification of no slot", world.Message{Kind: messageNotify, X: 16}, 0, -1},
	{"notification of a slot that wraps", world.Message{Kind: messageNotify, X: 1 << 63}, 0, -1},
	{"a word that is not the sender's", world.Message{Kind: messageWord, A: sharedAt, X: 1}, 0, -1},
	{"a word of another pair", world.Message{Kind: messageWord, A: 64 + postAt, X: 1}, 0, -1},
	{"a word too long", world.Message{Kind: messageWord, A: postAt, X: 1 << 32}, 0, -1},
	{"a lock of no kind", world.Message{Kind: messageLock, A: 9}, 0, -1},
	{"an unlock of no kind", world.Message{Kind: messageUnlock}, 0, -1},
	{"an unlock without a lock", world.Message{Kind: messageUnlock, A: uint8(Exclusive), X: 1}, 0, -1},
	{"no such kind", world.Message{Kind: 255}, 8, -1},
}

var sendNonsense = worldtest.Register("nonsense", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 10)
	if err != nil {
		return err
	}
	before := append([]byte(nil), win.own.block[pairsAt:]...)
	err = w.Barrier(ctx)
	if w.Rank() == 0 {
		p, e := win.peer(1)
		if e != nil {
			return e
		}
		for _, n := range nonsense {
			n.message.Service = win.number
			if n.answer < 0 {
				err = errors.Join(err, p.link.Tell(&n.message, make([]byte, n.payload)))
			} else {
				err = errors.Join(err, p.link.Ask(&n.message, make([]byte, n.payload), make([]byte, n.answer)))
			}
			var refused *world.RefusalError
			if e := p.link.Flush(ctx); !errors.As(e, &refused) {
				err = errors.Join(err, fmt.Errorf("%s: error is %v, want a refusal", n.name, e))
			}
		}
	}
	err = errors.Join(err, w.Barrier(ctx))
	if string(before) != string(win.own.block[pairsAt:]) {
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
func TestNonsense(t *testing.T) { worldtest.Apart(t, 2, sendNonsense) }

// wishTwice has rank 0 ask for a lock while it waits for one: a rank has one wish, or it
// could fill the other's memory with them.
var wishTwice = worldtest.Register("wishing twice", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 10)
	if err != nil {
		return err
	}
	if w.Rank() == 1 {
		err = win.Lock(ctx, Exclusive, 1)
		err = errors.Join(err, w.Barrier(ctx), w.Barrier(ctx), win.Unlock(ctx, 1))
		return errors.Join(err, w.Barrier(ctx), win.Close())
	}
	p, err := win.peer(1)
	if err != nil {
		return err
	}
	err = w.Barrier(ctx)
	err = errors.Join(err, win.askLock(ctx, p, Exclusive, 1), p.link.Flush(ctx))
	err = errors.Join(err, p.link.Tell(&world.Message{Kind: messageLock, Service: win.number, A: uint8(Exclusive), X: 77}, nil))
	var refused *world.RefusalError
	if e := p.link.Flush(ctx); !errors.As(e, &refused) {
		err = errors.Join(err, fmt.Errorf("error is %v, want a refusal", e))
	}
	err = errors.Join(err, w.Barrier(ctx), win.awaitLock(ctx, "Lock", p, Exclusive, 1))
	win.tellUnlock(p, Exclusive, 1)
	return errors.Join(err, w.Barrier(ctx), win.Close())
})

func TestWishTwice(t *testing.T) { worldtest.Apart(t, 2, wishTwice) }
