package job_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

var errBody = errors.New("body failed")

func TestRunArguments(t *testing.T) {
	nothing := func(context.Context, *world.World) error { return nil }
	for _, n := range []int{0, -1, job.MaxRanks + 1} {
		err := world.Run(t.Context(), n, nothing)
		require.ErrorIs(t, err, world.ErrArgument)
		require.ErrorContains(t, err, fmt.Sprintf("world: Run: invalid argument: %d ranks, allowed are 1 to %d", n, job.MaxRanks))
	}
	require.ErrorIs(t, world.Run(t.Context(), 2, nil), world.ErrArgument)
	var missing context.Context
	require.ErrorIs(t, world.Run(missing, 2, nothing), world.ErrArgument)
	require.NoError(t, world.Run(t.Context(), 2, nothing, world.WithLogger(nil), nil))
}

// Run names each rank that failed by itself, whichever way, and none that failed
// because of it.
func TestRunFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fail func() error
		text string
	}{
		"error":     {func() error { return errBody }, "world: rank 1: body failed"},
		"panic":     {func() error { panic("a bug") }, "world: rank 1: panic: a bug\n"},
		"nil panic": {func() error { panic(nil) }, "world: rank 1: panic: "},
		"goexit":    {func() error { runtime.Goexit(); return nil }, "world: rank 1: body ended its goroutine"},
	} {
		t.Run(name, func(t *testing.T) {
			err := world.Run(t.Context(), 4, func(ctx context.Context, w *world.World) error {
				if w.Rank() == 1 {
					return c.fail()
				}
				return w.Barrier(ctx)
			})
			var rank *world.RankError
			require.ErrorAs(t, err, &rank)
			require.Equal(t, 1, rank.Rank)
			require.ErrorContains(t, err, c.text)
			require.NotContains(t, err.Error(), "rank 0")
		})
	}
	t.Run("two", func(t *testing.T) {
		err := world.Run(t.Context(), 3, func(_ context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return nil
			}
			return fmt.Errorf("of %d: %w", w.Rank(), errBody)
		})
		require.ErrorIs(t, err, errBody)
		require.EqualError(t, err, "world: rank 0: of 0: body failed\nworld: rank 2: of 2: body failed")
	})
}

// A rank of this process is one of a job already: Init is an error in each, however deep in the body, and in another goroutine.
func TestInitInABody(t *testing.T) {
	var deep func(ctx context.Context, depth int) error
	deep = func(ctx context.Context, depth int) error {
		if depth > 0 {
			return deep(ctx, depth-1)
		}
		// The stack alone tells of the body.
		_, err := world.Init(context.Background())
		return err
	}
	for _, depth := range []int{0, 1000} {
		body := func(ctx context.Context, w *world.World) error {
			if w.Rank() != 0 {
				return deep(ctx, depth)
			}
			refused := make(chan error)
			go func() {
				_, err := world.Init(ctx)
				refused <- err
			}()
			return <-refused
		}
		profile, err := sim.ByName("ndr-2024")
		require.NoError(t, err)
		simulator, err := sim.New(profile, 1)
		require.NoError(t, err)
		for _, err := range []error{world.Run(t.Context(), 3, body), world.Simulate(t.Context(), simulator, 3, body)} {
			require.ErrorIs(t, err, world.ErrInitialized)
			for rank := range 3 {
				require.ErrorContains(t, err, fmt.Sprintf("rank %d: Init: already initialized: this rank is one of Run, Main or Simulate", rank))
			}
		}
	}
}

// The context of a body does not keep Init from joining a job after the body has returned, unless that was within another body.
func TestInitWithContextOfBodyThatHasEnded(t *testing.T) {
	var kept context.Context
	inner := func(ctx context.Context, _ *world.World) error {
		kept = ctx
		return nil
	}
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, _ *world.World) error {
		if err := world.Run(ctx, 1, inner); err != nil {
			return err
		}
		refused := make(chan error)
		go func() {
			_, err := world.Init(kept)
			refused <- err
		}()
		if err := <-refused; !errors.Is(err, world.ErrInitialized) {
			return fmt.Errorf("Init in the outer body: %w", err)
		}
		return nil
	}))
	w, err := world.Init(kept)
	require.NoError(t, err)
	require.NoError(t, w.Close())
}

// Bodies get the context of Run, whose end ends their calls.
func TestRunContext(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	heard := make(chan struct{})
	err := world.Run(ctx, 2, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 1 {
			cancel(cause)
			// The Barrier would end by the error of a rank that has left, if rank 0 looked at that first.
			<-heard
			return nil
		}
		defer close(heard)
		err := w.Barrier(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			return fmt.Errorf("error is %w, want that of the context and its cause", err)
		}
		return nil
	})
	require.NoError(t, err)
}

// waits are calls in which rank 0 waits for rank 1.
var waits = map[string]func(s *script, ctx context.Context) error{
	"Barrier":   func(s *script, ctx context.Context) error { return s.World.Barrier(ctx) },
	"Broadcast": func(s *script, ctx context.Context) error { return world.Broadcast(ctx, s.World, 1, make([]int, 3)) },
	"Gather": func(s *script, ctx context.Context) error {
		return world.Gather(ctx, s.World, 0, make([]int, 1), make([]int, s.n))
	},
	"AllGather": func(s *script, ctx context.Context) error {
		return world.AllGather(ctx, s.World, make([]int, 1), make([]int, s.n))
	},
	"Reduce": func(s *script, ctx context.Context) error {
		return world.Reduce(ctx, s.World, 0, make([]int, 1), make([]int, 1), add[int])
	},
	"AllReduce": func(s *script, ctx context.Context) error {
		return world.AllReduce(ctx, s.World, make([]int, 1), make([]int, 1), add[int])
	},
	"Scatter": func(s *script, ctx context.Context) error {
		return world.Scatter(ctx, s.World, 1, make([]int, s.n), make([]int, 1))
	},
	"AllToAll": func(s *script, ctx context.Context) error {
		return world.AllToAll(ctx, s.World, make([]int, s.n), make([]int, s.n))
	},
	"a send of many letters": func(s *script, ctx context.Context) error {
		return world.Broadcast(ctx, s.World, 0, make([]int, 200_000))
	},
	"a long AllReduceOp": func(s *script, ctx context.Context) error {
		return world.AllReduceOp(ctx, s.World, make([]int64, 40_000), make([]int64, 40_000), world.Sum)
	},
}

// A call that waits ends with its context, must be called again before another,
// and then goes on.
func TestCutShort(t *testing.T) {
	expired, cancel := context.WithTimeout(t.Context(), 0) // expires
	defer cancel()
	for name, call := range waits {
		t.Run(name, func(t *testing.T) {
			cut := make(chan struct{})
			require.NoError(t, run(t, 2, func(s *script) {
				if s.me == 0 {
					s.Fails(call(s, ended), context.Canceled)
					s.Fails(call(s, expired), context.DeadlineExceeded)
					for other, refused := range waits {
						if other != name {
							s.Fails(refused(s, s.Ctx), world.ErrUnfinished)
						}
					}
					close(cut)
				}
				<-cut
				s.OK(call(s, s.Ctx))
				s.OK(s.World.Barrier(s.Ctx))
			}))
		})
	}
}

// A combine that panics ends its rank and nothing else goes on as if it had not.
func TestCombinePanics(t *testing.T) {
	err := run(t, 2, func(s *script) {
		defer func() {
			if s.me == 0 && recover() != nil {
				s.Fails(s.World.Barrier(s.Ctx), world.ErrUnfinished)
				s.OK(errBody)
			}
		}()
		s.OK(world.Reduce(s.Ctx, s.World, 0, []int{1}, []int{0}, func(int, int) int { panic("overflow") }))
	})
	require.EqualError(t, err, "world: rank 0: body failed")
}

func TestClosed(t *testing.T) {
	require.NoError(t, run(t, 2, func(s *script) {
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(s.World.Close())
		s.OK(s.World.Close())
		for _, call := range waits {
			s.Fails(call(s, s.Ctx), world.ErrClosed)
		}
	}))
}

// A second goroutine of a rank is refused while one is in a collective.
func TestBusy(t *testing.T) {
	seen := make(chan struct{})
	require.NoError(t, run(t, 2, func(s *script) {
		if s.me == 0 {
			barrier := make(chan error)
			go func() {
				for {
					if err := s.World.Barrier(s.Ctx); !errors.Is(err, world.ErrBusy) {
						barrier <- err
						return
					}
				}
			}()
			for !errors.Is(s.World.Barrier(ended), world.ErrBusy) {
				runtime.Gosched()
			}
			s.Fails(s.World.Barrier(s.Ctx), world.ErrBusy)
			s.Fails(world.Broadcast(s.Ctx, s.World, 0, make([]int, 0)), world.ErrBusy)
			close(seen)
			s.OK(<-barrier)
			return
		}
		<-seen
		s.OK(s.World.Barrier(s.Ctx))
	}))
}
