package jobtest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/job"
)

// BusyService and IdleService are what ServeBusy has a rank serve.
const BusyService, IdleService = 1000, 1001

// A Busy delays the messages to its service, and those after them, until it is set. It answers a question once the inbox
// of the link is full.
type Busy struct{ atomic.Bool }

// Serve is a job.Service.
func (b *Busy) Serve(from *job.Link, _ *job.Message, _ []byte) error {
	from.Later(func() (bool, error) {
		done := b.Load()
		if done || from.InboxFull() {
			from.Answer(nil)
		}
		return done, nil
	})
	return nil
}

// ServeBusy has this rank serve BusyService, by what it returns, and IdleService.
func ServeBusy(w *job.World) (busy *Busy, stop func()) {
	busy, idle := new(Busy), new(Busy)
	idle.Store(true)
	stopBusy, stopIdle := w.Serve(BusyService, busy), w.Serve(IdleService, idle)
	return busy, func() {
		stopBusy()
		stopIdle()
	}
}

// Tell sends a rank a message for a service.
func Tell(w *job.World, rank int, service uint32) (*job.Link, error) {
	link, err := w.Link(rank)
	if err != nil {
		return nil, err
	}
	return link, link.Tell(&job.Message{Kind: job.FirstKind, Service: service}, nil)
}

// Crowd has a rank busy, and no more room on the way to it until its Busy is set. The ranks share no memory.
func Crowd(ctx context.Context, w *job.World, rank int) error {
	link, err := w.Link(rank)
	if err != nil {
		return err
	}
	if err := link.Ask(ctx, &job.Message{Kind: job.FirstKind, Service: BusyService}, nil, nil); err != nil {
		return err
	}
	question := link.Questions()
	// The first time the rank may not have taken all letters for which it has receives. It answers when it has taken
	// them, and the answer comes after their acknowledgements. More letters than fit a ring of the rank are outstanding
	// then, so no other becomes complete.
	if err := fill(ctx, link); err != nil {
		return err
	}
	if err := link.Reach(ctx, question); err != nil {
		return err
	}
	return fill(ctx, link)
}

// fill sends messages over a link until there is no room for another.
func fill(ctx context.Context, link *job.Link) error {
	ended, end := context.WithCancel(ctx)
	end()
	for {
		err := link.TellWithin(ended, &job.Message{Kind: job.FirstKind, Service: IdleService}, nil)
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			return ctx.Err()
		default:
			return fmt.Errorf("jobtest: filling the way to rank %d: %w", link.Rank(), err)
		}
	}
}
