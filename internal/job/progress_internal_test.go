package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
)

// A question is what somebody waits for, and what asks for nothing, of which the completion tells; another message is not.
func TestUrgent(t *testing.T) {
	var service echo
	// A barrier, too, is what somebody waits for: rank 1 enters none before rank 0 has counted.
	begun, counted := make(chan struct{}), make(chan struct{})
	runApart(t, 2, func(ctx context.Context, w *World) error {
		defer w.Serve(7, &service)()
		w.engine.Close()
		l, err := w.Link(1 - w.rank)
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		// Both connect first, for which somebody waits, too.
		err = l.Ask(ctx, &Message{Kind: kindFlush}, nil, nil)
		if err := errors.Join(err, l.Flush(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
		for _, how := range []string{"told", "asked", "settled"} {
			count := func() (n uint64) {
				w.Exclude(func() {
					urgent, completing := w.engine.Demand()
					if n = urgent; how == "settled" {
						n = completing
					}
				})
				return n
			}
			told := service.told.Load()
			if w.rank == 0 {
				before := count()
				begun <- struct{}{}
				for service.told.Load() == told {
					w.Poll()
				}
				for how != "told" && count() == before && ctx.Err() == nil {
					w.Poll()
				}
				grown := count() > before
				counted <- struct{}{}
				if grown != (how != "told") {
					return fmt.Errorf("a message was %s, and somebody waits: %v", how, grown)
				}
			} else {
				<-begun
				m := Message{Kind: FirstKind + 1, Service: 7, X: 1}
				if err := l.Tell(&m, nil); err != nil {
					return err
				}
				l.Post()
				var err error
				switch how {
				case "asked":
					err = l.Flush(ctx)
				case "settled":
					err = l.Reach(ctx, l.Mark())
				}
				<-counted
				if err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// A rank that computes, and waits for a moment now and then, serves others meanwhile: mostly before another goroutine has slept
// naps times for as long as the background goroutine stands back at most.
func TestComputingServes(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("skipped: with one processor no other goroutine runs while a rank computes for so short a time")
	}
	const (
		turns = 2
		tries = 20
		trips = 3
		naps  = 8
	)
	var service echo
	over := make(chan struct{})
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		defer w.Serve(7, &service)()
		l, err := w.Link(1 - w.rank)
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		for w.rank == 0 {
			select {
			case <-over:
				return w.Barrier(ctx)
			default:
			}
			if err := l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil); err != nil {
				return err
			}
			if err := l.Flush(ctx); err != nil {
				return err
			}
		}
		w.KeepProgress()
		served := 0
		try := func() error {
			if err := l.Ask(ctx, &Message{Kind: kindFlush}, nil, nil); err != nil {
				return err
			}
			if err := l.Flush(ctx); err != nil {
				return err
			}
			// What came with the answer may be served just then.
			want := service.told.Load() + trips
			var slept atomic.Int64
			// What keeps the background goroutine from its processor keeps this goroutine from it as well, whatever the load.
			rested := make(chan struct{})
			go func() {
				defer close(rested)
				for slept.Load() < naps && service.told.Load() < want {
					time.Sleep(progress.LongestStandBack) // computes
					slept.Add(1)
				}
			}()
			for slept.Load() < naps && service.told.Load() < want { // computes
			}
			if service.told.Load() >= want {
				served++
			}
			<-rested
			return nil
		}
		// Under load the background goroutine may be the one that waits for its processor, time and again.
		for turn := 0; turn < turns && served < tries/2; turn++ {
			served = 0
			for range tries {
				if err := try(); err != nil {
					return err
				}
			}
			t.Logf("others were served in %d of %d times of computing", served, tries)
		}
		close(over)
		assert.GreaterOrEqual(t, served, tries/2, "of %d times of computing, in so many others were served", tries)
		return w.Barrier(ctx)
	}, apart()...)
	require.NoError(t, err)
}

// A rank that writes much makes progress meanwhile, without a background goroutine and without a call
// that waits.
func TestWriterPolls(t *testing.T) {
	var service echo
	places, idle, told := make([]Places, 1), make(chan struct{}), make(chan error, 1)
	runApart(t, 2, func(ctx context.Context, w *World) error {
		defer w.Serve(7, &service)()
		if w.rank == 1 {
			region, err := w.Register(make([]byte, pollBytes), verbs.LocalWrite|verbs.RemoteWrite)
			if err != nil {
				return err
			}
			places[0] = region.Remote()
		}
		if err := Broadcast(ctx, w, 1, places); err != nil {
			return err
		}
		l, err := w.Link(1 - w.rank)
		if err != nil {
			return err
		}
		if err := errors.Join(l.Flush(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
		if w.rank == 1 {
			<-idle
			err := l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil)
			l.Post()
			told <- err
			return w.Barrier(ctx)
		}
		w.engine.Close()
		close(idle)
		if err := <-told; err != nil {
			return err
		}
		piece := make([]byte, pollBytes/4)
		for i := range 4 {
			if n := service.told.Load(); n != 0 {
				return fmt.Errorf("%d served after %d pieces, which are not %d bytes", n, i, pollBytes)
			}
			if err := l.Write(ctx, piece, w.Place(1, &places[0]), 0); err != nil {
				return err
			}
		}
		if n := service.told.Load(); n != 1 {
			return fmt.Errorf("%d messages served after %d bytes, not the one that had come", n, pollBytes)
		}
		return errors.Join(l.Flush(ctx), w.Barrier(ctx))
	})
}
