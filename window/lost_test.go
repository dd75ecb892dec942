package window_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Operations that were not sent when the World is closed are lost, and said to be; not where a rank has failed, nor those
// that a flush has completed.
func TestLostOperations(t *testing.T) {
	run := func(flush bool, own error) error {
		return world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int64](ctx, w, 1)
			if err = errors.Join(err, w.Barrier(ctx)); err != nil || w.Rank() == 1 {
				return err
			}
			err = errors.Join(win.Lock(ctx, window.Shared, 1), win.Put([]int64{1}, 1, 0))
			if flush {
				err = errors.Join(err, win.Flush(ctx, 1))
			}
			return errors.Join(err, own)
		}, jobtest.OptionsApart()...)
	}
	err := run(false, nil)
	require.ErrorIs(t, err, epoch.ErrEpochOpen)
	require.ErrorContains(t, err, "rank 0: window: operations on rank 1 are lost: Close of the World: rank 1 is locked (shared); close it by Unlock")
	require.NoError(t, run(true, nil))
	own := errors.New("own")
	err = run(false, own)
	require.ErrorIs(t, err, own)
	require.NotErrorIs(t, err, epoch.ErrEpochOpen)
}

// Who closes a window hears that a rank which it has named in a Start, and has closed it too, has never posted.
func TestCompleteWithoutPost(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		win := allocate[int64](s, 1)
		if s.World.Rank() == 1 {
			s.OK(win.Close())
			return
		}
		s.OK(win.Start(s.Ctx, groupOf(s, win, 1)))
		s.OK(win.Put([]int64{1}, 1, 0))
		s.OK(win.Complete(s.Ctx))
		err := win.Close()
		s.Fails(err, epoch.ErrNotPosted)
		require.ErrorContains(t, err, "rank 1 has closed the window without the Post that the last Start of rank 0 was for")
	}), jobtest.OptionsApart()...))
}

// A post that is on its way after many other messages, when all have met to close the window, is not missing.
func TestPostOnItsWay(t *testing.T) {
	busy.Acquire(t)
	many := testsize.PlainOrLarge(2<<20, 8<<20)
	body := scripted(func(s *script) {
		// The others are written nothing.
		count := 0
		if s.World.Rank() == 0 {
			count = many
		}
		win, other := allocate[int64](s, 1), allocate[int64](s, count)
		s.OK(other.LockAll(s.Ctx))
		switch s.World.Rank() {
		case 0:
			s.OK(win.Start(s.Ctx, groupOf(s, win, 1)))
			s.OK(win.Put([]int64{7}, 1, 0))
			s.OK(win.Complete(s.Ctx))
		case 1:
			// The Complete of rank 0 comes before.
			s.World.Compute(20 * time.Millisecond)
			_, err := other.RPut(make([]int64, many), 0, 0)
			s.OK(err)
			_, err = other.RFlush(0)
			s.OK(err)
			s.OK(win.Post(s.Ctx, groupOf(s, win, 0)))
			s.OK(win.Wait(s.Ctx))
			s.Check(win.Local()[0] == 7, "the element is %d", win.Local()[0])
		}
		s.OK(win.Close())
		s.OK(other.UnlockAll(s.Ctx))
		s.OK(other.Close())
	})
	t.Run("tcp", func(t *testing.T) { require.NoError(t, world.Run(t.Context(), 4, body, world.WithDevice("tcp"))) })
	t.Run("simulated", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 4, body))
	})
}

// A rank of a group that has failed ends the calls that need it, also where another one, before it in the group, lives and
// does not come.
func TestGroupWithLost(t *testing.T) {
	for name, call := range map[string]func(s *script, win *window.Window[int64], group window.Group) error{
		"Wait": func(s *script, win *window.Window[int64], group window.Group) error {
			err := win.Post(s.Ctx, group)
			var lost *world.PeerError
			if errors.As(err, &lost) {
				err = nil
			}
			return errors.Join(err, win.Wait(s.Ctx))
		},
		"Test": func(s *script, win *window.Window[int64], group window.Group) error {
			_ = win.Post(s.Ctx, group)
			for {
				if ended, err := win.Test(); ended || err != nil {
					return err
				}
				s.OK(s.Ctx.Err())
				runtime.Gosched()
			}
		},
		"Start": func(s *script, win *window.Window[int64], group window.Group) error {
			// It may not wait for ranks that are not mapped, and not hear of one that fails later.
			for job.Of(s.World).FailureCount() == 0 {
				job.Of(s.World).Poll()
				runtime.Gosched()
			}
			return win.Start(s.Ctx, group)
		},
	} {
		for way, options := range map[string][]world.Option{"mapped": nil, "apart": jobtest.OptionsApart()} {
			for _, dead := range []int{1, 2} {
				t.Run(fmt.Sprint(name, " ", way, " ", dead), func(t *testing.T) {
					done := make(chan struct{})
					var ready sync.WaitGroup
					ready.Add(2)
					died := errors.New("died")
					err := world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
						return scripted(func(s *script) {
							win := allocate[int64](s, 1)
							switch s.World.Rank() {
							case 0:
								defer close(done)
								ready.Done()
								s.Lost(call(s, win, groupOf(s, win, 1, 2)), dead)
							case dead:
								ready.Wait()
								s.OK(died)
							default:
								ready.Done()
								<-done
							}
						})(ctx, w)
					}, options...)
					require.ErrorIs(t, err, died)
				})
			}
		}
	}
}
