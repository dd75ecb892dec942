package world

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/onesided/rma/verbs/shm"
)

// MaxRanks is the most ranks that Run starts.
const MaxRanks = 1 << 16

// Run calls body for n ranks, each a goroutine of this process with a World that is
// closed when body returns, and returns when all have ended. The context that
// bodies get is that of Run.
//
// A rank whose body returns an error, or panics, has failed. Run returns a
// *RankError for each rank that failed by itself, joined; failures of ranks that
// only followed from those (a *PeerError) are left out.
func Run(ctx context.Context, n int, body func(ctx context.Context, w *World) error, options ...Option) error {
	if n < 1 || n > MaxRanks {
		return fmt.Errorf("world: Run: %w: %d ranks, allowed are 1 to %d", ErrArgument, n, MaxRanks)
	}
	worlds, err := fabricWorlds(n, newSettings(options))
	if err != nil {
		return err
	}
	errs := make([]error, n)
	var ranks sync.WaitGroup
	for rank, w := range worlds {
		ranks.Go(func() {
			if err := call(ctx, body, w); err != nil {
				w.roster.fail(rank, err)
				errs[rank] = errors.Join(err, w.depart())
				return
			}
			errs[rank] = w.Close()
		})
	}
	ranks.Wait()
	return summary(errs)
}

// call turns a panic, or the end of the goroutine, into an error.
func call(ctx context.Context, body func(ctx context.Context, w *World) error, w *World) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		} else {
			err = errors.New("body ended its goroutine")
		}
	}()
	err = body(ctx, w)
	returned = true
	return err
}

// summary joins the errors that are not consequences of others.
func summary(errs []error) error {
	var own, followed []error
	for rank, err := range errs {
		if err == nil {
			continue
		}
		var peer *PeerError
		if e := (&RankError{rank, err}); errors.As(err, &peer) {
			followed = append(followed, e)
		} else {
			own = append(own, e)
		}
	}
	if len(own) == 0 {
		own = followed
	}
	return errors.Join(own...)
}

// fabricWorlds makes the ranks of a job in this process.
func fabricWorlds(n int, s settings) ([]*World, error) {
	fabric := shm.NewFabric()
	roster := newRoster(n)
	worlds := make([]*World, n)
	contacts := make([]contact, n)
	for rank := range n {
		device, err := fabric.Open()
		if err == nil {
			worlds[rank], contacts[rank], err = newWorld(rank, n, runtime.GOMAXPROCS(0), device, roster, s)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, w := range worlds {
		w.contact = func(_ context.Context, rank int) (contact, error) { return contacts[rank], nil }
		w.end = roster.listen(func(int) { w.channel.Ring() })
	}
	return worlds, nil
}
