package world_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// shrinking has a World of survivors made twice: after rank 2 has failed, and after
// the first of those that are left has failed in the World that they made.
func shrinking(s *script, fail func() error) error {
	works := func(w *world.World, size int) {
		s.Check(w.Size() == size, "the World has %d ranks, want %d", w.Size(), size)
		sum := make([]int, 1)
		s.OK(world.AllReduce(s.Ctx, w, []int{1 << w.Rank()}, sum, func(a, b int) int { return a + b }))
		s.Check(sum[0] == 1<<size-1, "sum is %d", sum[0])
	}
	broken := func(w *world.World) {
		var lost *world.PeerError
		err := error(nil)
		for err == nil {
			err = w.Barrier(s.Ctx)
		}
		s.Check(errors.As(err, &lost), "error is %v", err)
	}
	works(s.World, s.World.Size())
	// Whoever passes this knows that all have come to it, not that all have passed.
	err := s.World.Barrier(s.Ctx)
	if s.me == 2 {
		s.OK(err)
		return fail()
	}
	broken(s.World)
	small, err := s.World.Shrink(s.Ctx)
	s.OK(err)
	works(small, s.World.Size()-1)
	_, err = s.World.Shrink(s.Ctx)
	s.Fails(err, world.ErrArgument)
	err = small.Barrier(s.Ctx)
	if small.Rank() == 0 {
		s.OK(err)
		return fail()
	}
	broken(small)
	smaller, err := small.Shrink(s.Ctx)
	s.OK(err)
	for rank := range small.Size() {
		s.Check(rank == 0 || small.Failure(rank) == nil, "rank %d: %v", rank, small.Failure(rank))
	}
	works(smaller, s.World.Size()-2)
	s.OK(smaller.Barrier(s.Ctx))
	s.Check(smaller.Rank() == small.Rank()-1, "rank %d of the first World is %d of the second", small.Rank(), smaller.Rank())
	// In any order.
	s.OK(small.Close())
	works(smaller, s.World.Size()-2)
	s.OK(s.World.Close())
	works(smaller, s.World.Size()-2)
	return smaller.Close()
}

var errFall = errors.New("falling")

var killedShrinking = register("killed, and shrinking", func(s *script) {
	s.OK(shrinking(s, func() error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}))
})

func TestShrink(t *testing.T) {
	busy.Acquire(t)
	forms := map[string]func(t *testing.T) *jobtest.Job{
		"processes": func(t *testing.T) *jobtest.Job { return jobtest.Start(t, 5, killedShrinking) },
		"tcp": func(t *testing.T) *jobtest.Job {
			return jobtest.StartWith(t, 5, killedShrinking, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
		},
		"hosts": func(t *testing.T) *jobtest.Job {
			return jobtest.StartWith(t, 5, killedShrinking, func(rank int) []string {
				return []string{"RMA_DEVICE=", "RMA_HOST=" + string(rune('a'+rank%2))}
			})
		},
	}
	for name, start := range forms {
		t.Run(name, func(t *testing.T) {
			for rank, err := range start(t).Wait() {
				if rank == 0 || rank == 2 {
					require.Error(t, err, "rank %d", rank)
				} else {
					require.NoError(t, err, "rank %d", rank)
				}
			}
		})
	}
}

// In one process a rank fails by its error, also where the others learn of it as processes do.
func TestShrinkGoroutines(t *testing.T) {
	for _, device := range []string{"shm", "tcp"} {
		t.Run(device, func(t *testing.T) {
			err := world.Run(t.Context(), 5, scripted(func(s *script) {
				s.OK(shrinking(s, func() error { return errFall }))
			}), world.WithDevice(device))
			require.ErrorIs(t, err, errFall)
			for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
				require.ErrorIs(t, e, errFall)
			}
		})
	}
}
