package job

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/verbs"
)

// A question behind a read that was answered before the read was known to have come tells
// nothing of what came before it, not even once that is known.
func TestAnsweredBeforeRead(t *testing.T) {
	var service echo
	places, memory, over := make([]Places, 1), make([]byte, 8), make(chan struct{})
	runApart(t, 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			region, err := w.Register(memory, verbs.LocalWrite|verbs.RemoteRead)
			if err != nil {
				return err
			}
			places[0] = region.Remote()
			defer w.Serve(7, &service)()
		}
		if err := Broadcast(ctx, w, 1, places); err != nil {
			return err
		}
		if w.rank == 1 {
			// In a Barrier it would ask for what rank 0 does, and the answers be heard of.
			w.KeepProgress()
			select {
			case <-over:
			case <-ctx.Done():
			}
			return w.Barrier(ctx)
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		if err := l.Flush(ctx); err != nil {
			return err
		}
		err = l.Read(ctx, make([]byte, 8), w.Place(1, &places[0]), 0)
		read := l.Mark()
		if err := errors.Join(err, l.Ask(ctx, &Message{Kind: FirstKind, Service: 7}, nil, nil)); err != nil {
			return err
		}
		l.Post()
		asked := l.Mark()
		if _, err := l.await(ctx, 0, asked.asked); err != nil {
			return err
		}
		if done := l.done.Load(); done >= read.sequence {
			return fmt.Errorf("request %d is done, though nothing tells of the read, which is %d", done, read.sequence)
		}
		w.Exclude(func() { l.completed(&verbs.Completion{ID: read.sequence, Status: verbs.StatusSuccess}) })
		err = l.Settle(ctx)
		close(over)
		return errors.Join(err, w.Barrier(ctx))
	})
}

// On a card that may send again what has arrived an answer does not tell that the question's
// request has ended, nor what came before: its completion does.
func TestAnswerOfResender(t *testing.T) {
	for _, resends := range []bool{false, true} {
		runApart(t, 2, func(_ context.Context, w *World) error {
			network := w.cards[networkCard]
			own := &card{kind: networkCard, device: network.device, attributes: network.attributes}
			own.attributes.Resends = resends
			// It has no queue pair: nothing leaves.
			l := &Link{world: w, rank: 1 - w.rank, card: own}
			if err := l.Ask(t.Context(), &Message{Kind: FirstKind, Service: 7}, nil, nil); err != nil {
				return err
			}
			heard := l.signalled == l.sequence
			var err error
			w.Exclude(func() { err = l.answer(&Message{Kind: kindAnswer}, nil) })
			if err != nil {
				return err
			}
			if done := l.done.Load() == l.sequence; heard != resends || done == resends {
				return fmt.Errorf("resends %t: the completion is heard of: %t; done by the answer: %t", resends, heard, done)
			}
			if err := l.cover(); err != nil {
				return err
			}
			w.Exclude(func() { l.completed(&verbs.Completion{ID: l.sequence, Status: verbs.StatusSuccess}) })
			if l.done.Load() != 1 || l.sequence != 1 {
				return fmt.Errorf("resends %t: %d of %d requests are done", resends, l.done.Load(), l.sequence)
			}
			return nil
		})
	}
}
