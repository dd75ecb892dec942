package world

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"github.com/onesided/rma/verbs"
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
	if ctx == nil || body == nil {
		return fmt.Errorf("world: Run: %w: nil context or body", ErrArgument)
	}
	worlds, err := fabricWorlds(n, newSettings(options))
	if err != nil {
		return err
	}
	errs := make([]error, n)
	var ranks sync.WaitGroup
	for rank, w := range worlds {
		ranks.Go(func() {
			// Also when the body ends the goroutine, by runtime.Goexit.
			err := errors.New("body ended its goroutine")
			defer func() {
				if err == nil {
					errs[rank] = w.Close()
					return
				}
				w.roster.fail(rank, err)
				errs[rank] = errors.Join(err, w.depart())
			}()
			err = call(ctx, body, w)
		})
	}
	ranks.Wait()
	return summary(errs)
}

// call turns a panic into an error.
func call(ctx context.Context, body func(ctx context.Context, w *World) error, w *World) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return body(ctx, w)
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
	var devices []verbs.Device
	for rank := range n {
		device, err := fabric.Open()
		if err == nil {
			devices = append(devices, device)
			worlds[rank], contacts[rank], err = newWorld(rank, n, runtime.GOMAXPROCS(0), device, roster, s)
		}
		if err != nil {
			return nil, errors.Join(err, closeDevices(devices))
		}
	}
	for _, w := range worlds {
		w.contact = func(_ context.Context, rank int) (contact, error) { return contacts[rank], nil }
		w.end = roster.listen(func(int) { w.channel.Ring() })
	}
	return worlds, nil
}

func closeDevices(devices []verbs.Device) error {
	var errs []error
	for _, device := range devices {
		errs = append(errs, device.Close())
	}
	return errors.Join(errs...)
}
