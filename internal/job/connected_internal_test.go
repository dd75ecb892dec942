package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/onesided/rma/verbs"
)

// A rank that asks for a second connection of a kind is refused, by name, and keeps the
// first; so is one that says a number that the job does not have, or that of the rank itself.
func TestConnectedAlready(t *testing.T) {
	runApart(t, 2, func(ctx context.Context, w *World) error {
		data := []int{1}
		if err := Broadcast(ctx, w, 0, data); err != nil {
			return err
		}
		if w.rank == 0 {
			l, err := w.Link(1)
			if err == nil {
				err = l.Flush(ctx)
			}
			if err != nil {
				return err
			}
			for _, c := range []struct {
				hello []byte
				want  string
			}{
				{hello(laneLink, 0, 0), "rank 0 is connected already: another process says that it is rank 0, too"},
				{hello(laneLink, 1, 0), "this is rank 1"},
				{hello(laneMute, 0, 0), "rank 0 shares no memory with this one"},
				{hello(laneMute, 1, 0), "this is rank 1"},
				{hello(laneLink, 2, 0), "the job has no rank 2"},
				{hello(laneLink, 1<<32-1, 0), "the job has no rank"},
				{hello(laneMute+1, 0, 0), "names no rank"},
				{hello(laneLink, 0, 0)[:4], "names no rank"},
				{nil, "names no rank"},
			} {
				if err := refusedBy(ctx, w, 1, c.hello); !errors.Is(err, verbs.ErrRejected) || !strings.Contains(err.Error(), c.want) {
					return fmt.Errorf("hello %v: %w, want %q", c.hello, err, c.want)
				}
			}
			if err := l.Flush(ctx); err != nil {
				return err
			}
		}
		// Over the connections from before.
		return errors.Join(w.Barrier(ctx), Broadcast(ctx, w, 0, data))
	})
}

// refusedBy is why a rank does not take a connection.
func refusedBy(ctx context.Context, w *World, rank int, hello []byte) error {
	c := w.cardTo(rank)
	queue, err := c.device.CreateCompletionQueue(4)
	if err != nil {
		return err
	}
	pair, err := c.device.Connect(w.addressOf(rank), hello, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
	if err != nil {
		return err
	}
	wait := w.NewWaiter()
	defer wait.Finish()
	for queue.Poll(nil); pair.State() == verbs.StateConnecting; queue.Poll(nil) {
		if err := wait.Pause(ctx); err != nil {
			return err
		}
	}
	return errors.Join(pair.Err(), pair.Close(), queue.Close())
}
