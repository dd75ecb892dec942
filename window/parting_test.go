package window_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// parted checks that an error says that a rank has closed the window.
func (s *script) parted(err error, rank int) {
	var lost *world.PeerError
	s.Check(errors.As(err, &lost) && lost.Rank == rank && errors.Is(err, window.ErrDeparted) && errors.Is(err, world.ErrLeft),
		"error is %v, want that rank %d has closed the window", err, rank)
}

// partings have the last rank wait for rank 1, which closes the window because rank 0 has died, and stays.
var partings = map[string]func(s *script, win *window.Window[int64], group window.Group) error{
	"Start": func(s *script, win *window.Window[int64], group window.Group) error {
		if err := win.Start(s.Ctx, group); err != nil {
			return err
		}
		// It waits for the post no longer than here.
		s.OK(win.Get(make([]int64, 1), 1, 0))
		return win.Complete(s.Ctx)
	},
	"Wait": func(s *script, win *window.Window[int64], group window.Group) error {
		s.OK(win.Post(s.Ctx, group))
		return win.Wait(s.Ctx)
	},
	"Test": func(s *script, win *window.Window[int64], group window.Group) error {
		s.OK(win.Post(s.Ctx, group))
		for {
			if ended, err := win.Test(); ended || err != nil {
				return err
			}
			s.OK(s.Ctx.Err())
		}
	},
}

func init() {
	for name, wait := range partings {
		register("parting: "+name, func(s *script) {
			win := allocate[int64](s, 1)
			other, err := win.Group(1)
			s.OK(err)
			s.OK(s.World.Barrier(s.Ctx))
			jobtest.Signal("ready")
			if s.World.Rank() == 2 {
				s.parted(wait(s, win, other), 1)
			}
			survive(s, win)
		})
	}
	register("the first of a group dies", func(s *script) {
		win := allocate[int64](s, 1)
		others, err := win.Group(0, 1)
		s.OK(err)
		s.OK(s.World.Barrier(s.Ctx))
		jobtest.Signal("ready")
		switch s.World.Rank() {
		case 1:
			// It does not close the window before that. Its close is announced, too.
			s.OK(jobtest.Hold("held"))
		case 2:
			var lost *world.PeerError
			err := win.Start(s.Ctx, others)
			if err == nil {
				// It may wait for the posts no longer than here.
				s.OK(win.Get(make([]int64, 1), 0, 0))
				err = win.Complete(s.Ctx)
			}
			s.Check(errors.As(err, &lost) && lost.Rank == 0, "error is %v, want that rank 0 has failed", err)
			jobtest.Signal("heard")
		}
		survive(s, win)
	})
}

// survive has ranks go on together when rank 0 has died.
func survive(s *script, win *window.Window[int64]) {
	for s.World.Rank() == 0 || s.World.Err(0) == nil {
		job.Of(s.World).Poll()
		s.OK(s.Ctx.Err())
	}
	if s.World.Rank() == 1 {
		s.OK(win.Close())
	}
	small, err := s.World.Shrink(s.Ctx)
	s.OK(err)
	s.OK(small.Barrier(s.Ctx))
	s.OK(s.World.Close())
	s.OK(small.Close())
}

var partingPlaces = map[string]func(rank int) []string{
	"shared memory": func(int) []string { return []string{"RMA_DEVICE=shm"} },
	"TCP":           func(int) []string { return []string{"RMA_DEVICE=tcp"} },
	"two hosts":     func(rank int) []string { return []string{"RMA_DEVICE=", fmt.Sprint("RMA_HOST=", min(rank, 1))} },
}

// Who waits for a rank hears of it when that closes the window because another has died, though it needs nothing of
// that one.
func TestParting(t *testing.T) {
	busy.Acquire(t)
	for name := range partings {
		for where, place := range partingPlaces {
			t.Run(name+"/"+where, func(t *testing.T) {
				jobtest.StartWith(t, 3, "parting: "+name, place).Killed(0)
			})
		}
	}
}

// Who starts an epoch hears of the death of each of its group, whichever it waits for.
func TestStartOfTheDead(t *testing.T) {
	busy.Acquire(t)
	for where, place := range partingPlaces {
		t.Run(where, func(t *testing.T) {
			job := jobtest.StartWith(t, 3, "the first of a group dies", place)
			for rank := range 3 {
				job.Await(rank, "ready")
			}
			job.Kill(0)
			job.Await(2, "heard")
			job.Release(1)
			errs := job.Wait()
			require.ErrorContains(t, errs[0], "killed")
			require.NoError(t, errors.Join(errs[1:]...))
		})
	}
}

// An exposure to one that has died is none that is open: the window can be closed.
func TestCloseExposed(t *testing.T) {
	died, looked := errors.New("died"), make(chan struct{})
	look := sync.OnceFunc(func() { close(looked) })
	var rest error
	require.ErrorIs(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		err := scripted(func(s *script) {
			if s.World.Rank() == 1 {
				defer look()
			}
			win := allocate[int64](s, 1)
			other, err := win.Group(1 - s.World.Rank())
			s.OK(err)
			s.OK(win.Post(s.Ctx, other))
			s.OK(s.World.Barrier(s.Ctx))
			if s.World.Rank() == 0 {
				<-looked
				s.OK(died)
			}
			err = win.Close()
			look()
			s.Fails(err, epoch.ErrEpochOpen)
			for s.World.Err(0) == nil {
				job.Of(s.World).Poll()
			}
			s.OK(win.Close())
		})(ctx, w)
		if w.Rank() == 1 {
			rest = err
		}
		return err
	}), died)
	require.NoError(t, rest)
}
