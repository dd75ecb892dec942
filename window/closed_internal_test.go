package window

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/world"
)

// closedPart has rank 0 send to a part of rank 1 that was closed: over memory of the
// program, which stays.
var closedPart = jobtest.Register("sending to what is closed", func(ctx context.Context, w *world.World) error {
	memory := make([]int64, 10)
	win, err := Create(ctx, w, memory)
	if err != nil {
		return err
	}
	if err := errors.Join(win.LockAll(ctx), win.Put([]int64{7}, 1-w.Rank(), 3), win.UnlockAll(ctx), w.Barrier(ctx)); err != nil {
		return err
	}
	p, err := win.core.peer(1 - w.Rank())
	if err != nil {
		return err
	}
	if err := errors.Join(win.Close(), w.Barrier(ctx)); err != nil {
		return err
	}
	if w.Rank() == 0 {
		err = sendToClosed(ctx, p, win.core.number)
	} else {
		// The side that has found the access wrong says so, over TCP that of the memory; the other
		// hears that it is taken for dead.
		for w.Err(0) == nil && err == nil {
			job.Of(w).Poll()
			err = ctx.Err()
		}
	}
	if want := []int64{0, 0, 0, 7, 0, 0, 0, 0, 0, 0}; !slices.Equal(memory, want) {
		err = errors.Join(err, fmt.Errorf("memory of a window that was closed is %v, want %v", memory, want))
	}
	return err
})

// sendToClosed sends messages and then a write to a part that was closed. A message is
// refused, and the link goes on. A write has broken the rules of memory: it ends all that
// the ranks have with each other, which the writer may hear of first.
func sendToClosed(ctx context.Context, p *peer, number uint32) error {
	eight := make([]byte, 8)
	eight[0] = 1
	var err error
	for name, packet := range map[string][]byte{
		"put":        run(aggregate.Put, 0, 0, 8, 0, 8),
		"get":        run(aggregate.Get, 0, 0, 8, 0, 0),
		"accumulate": run(aggregate.Accumulate, Sum, kindOfInt64, 8, 0, 8),
		"lock":       nil,
	} {
		m := job.Message{Kind: messagePacket, Service: number}
		if packet == nil {
			m.Kind, m.A, m.X = messageLock, uint8(Exclusive), 1
		}
		if name == "get" {
			err = errors.Join(err, p.link.AskFor(ctx, &m, packet, anything{}))
		} else {
			err = errors.Join(err, p.link.Tell(&m, packet))
		}
		var refused *job.RejectionError
		if e := p.link.Flush(ctx); !errors.As(e, &refused) {
			err = errors.Join(err, fmt.Errorf("%s: error is %v, want a refusal", name, e))
		}
	}
	err = errors.Join(err, p.link.Write(ctx, eight, p.deferred.region, 0))
	var failed *job.PeerError
	if e := p.link.Flush(ctx); !errors.As(e, &failed) || failed.Rank != 1 {
		err = errors.Join(err, fmt.Errorf("error of a write is %v, want a *job.PeerError of rank 1", e))
	}
	return err
}

// TestClosedPart looks that a window which its owner has closed can be reached neither by
// messages nor by its keys.
func TestClosedPart(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, closedPart) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, closedPart) })
}

// keyless checks the description of another's part on a rank that maps nothing.
var keyless = jobtest.Register("keys of a part", func(ctx context.Context, w *world.World) error {
	win, err := Allocate[int64](ctx, w, 10)
	if err != nil {
		return err
	}
	d := &win.core.exposed[1-w.Rank()]
	if place := d.control; place != (verbs.RemoteRegion{}) {
		err = fmt.Errorf("the control block is at %+v", place)
	}
	if place := d.data; place.Length != 80 {
		err = errors.Join(err, fmt.Errorf("the memory is at %+v", place))
	}
	return errors.Join(err, win.Close())
})

// TestControlHasNoKey looks that locks and counters cannot be written past the checks of
// messages.
func TestControlHasNoKey(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 2, keyless) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, keyless) })
}

// TestNothingListens checks that a closed window gets no more failures, however it was closed.
func TestNothingListens(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(win *Window[int64]) error
	}{
		{"closed", func(win *Window[int64]) error { return win.Close() }},
		{"abandoned", func(*Window[int64]) error { return nil }},
	} {
		listens := true
		alone(t, func(ctx context.Context, w *world.World) error {
			win, err := Allocate[int64](ctx, w, 10)
			if err != nil {
				return err
			}
			stop := win.core.stopListening
			win.core.stopListening = func() { listens = false; stop() }
			return c.end(win)
		})
		if listens {
			t.Errorf("a window that was %s listens", c.name)
		}
	}
}
