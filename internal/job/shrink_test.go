package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
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
		s.Check(rank == 0 || small.Err(rank) == nil, "rank %d: %v", rank, small.Err(rank))
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

// A rank that calls Shrink instead of a collective, or after its context has cut short its own, ends the wait of the others in that
// by an error that says so. They call Shrink, too, and all go on in the World that it gives.
func TestShrinkEndsCollectives(t *testing.T) {
	long := make([]int, 100_000)
	calls := map[string]func(ctx context.Context, w *world.World) error{
		"Split":     func(ctx context.Context, w *world.World) error { _, err := w.Split(ctx, 0, 0); return err },
		"Barrier":   func(ctx context.Context, w *world.World) error { return w.Barrier(ctx) },
		"Broadcast": func(ctx context.Context, w *world.World) error { return world.Broadcast(ctx, w, 1, slices.Clone(long)) },
		"AllReduce": func(ctx context.Context, w *world.World) error {
			return world.AllReduceOp(ctx, w, []int{w.Rank()}, make([]int, 1), world.Sum)
		},
	}
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("a core for each %v", apart), func(t *testing.T) {
			if apart {
				spread(t)
			}
			for _, device := range []string{"shm", "tcp"} {
				for name, call := range calls {
					for _, begun := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s/%s begun %v", device, name, begun), func(t *testing.T) {
							t.Parallel()
							cut := make(chan struct{})
							require.NoError(t, runSoon(t, 3, device, func(s *script) {
								s.all(0)
								if s.me == 1 {
									if begun {
										s.Fails(call(ended, s.World), context.Canceled)
									}
									close(cut)
								} else {
									s.wait("rank 1 to be cut short", cut)
									// What rank 1 has done of the call may be all that one of the others needs.
									if err := call(s.Ctx, s.World); err != nil || !begun {
										s.gaveUp(err, 1, shrinkToo)
									}
								}
								w, err := s.World.Shrink(s.Ctx)
								s.OK(err)
								small := scriptOf(s.Ctx, w)
								s.Check(small.n == s.n, "%d ranks are left", small.n)
								s.gaveUp(s.World.Barrier(s.Ctx), 1, goOn)
								small.all(0)
								s.OK(w.Close())
							}))
						})
					}
				}
			}
		})
	}
}

// What the error of a call in which a rank has called Shrink instead advises.
const (
	shrinkToo = "call Shrink here, too, or close this World"
	goOn      = "use the World that Shrink gave"
)

// gaveUp checks that a call has failed because a rank has called Shrink instead.
func (s *script) gaveUp(err error, rank int, advice string) {
	var lost *world.PeerError
	who := fmt.Sprintf("rank %d", rank)
	if rank == s.me {
		who = "this rank"
	}
	s.Check(errors.As(err, &lost) == (rank != s.me) && (lost == nil || lost.Rank == rank) && errors.Is(err, world.ErrLeft) && strings.Contains(err.Error(), who+" has called Shrink") && strings.Contains(err.Error(), advice),
		"error is %v, want that %s has called Shrink, and %q", err, who, advice)
	s.Check(job.Of(s.World).FailureCount() == 0, "%d ranks have failed", job.Of(s.World).FailureCount())
}

// Where all call Shrink, and none has failed, they may go on in the World that they had as well.
func TestShrinkAllAlive(t *testing.T) {
	for _, device := range []string{"shm", "tcp"} {
		t.Run(device, func(t *testing.T) {
			require.NoError(t, runSoon(t, 4, device, func(s *script) {
				s.all(0)
				w, err := s.World.Shrink(ended)
				if errors.Is(err, context.Canceled) {
					w, err = s.World.Shrink(s.Ctx)
				}
				s.OK(err)
				for range 20 {
					s.all(1)
					scriptOf(s.Ctx, w).all(2)
				}
				// They notice there, too, that they call different things.
				call := s.World.Barrier
				if s.me == 0 {
					call = func(ctx context.Context) error { return world.Broadcast(ctx, s.World, 1, make([]int, 1)) }
				}
				s.Fails(call(s.Ctx), world.ErrMismatch)
				s.OK(w.Close())
			}))
		})
	}
}

// A rank whose Shrink was cut short after others have given up a collective because of it comes to no end of that, nor do they.
func TestShrinkCutShort(t *testing.T) {
	for _, apart := range []bool{false, true} {
		t.Run(fmt.Sprintf("a core for each %v", apart), func(t *testing.T) {
			if apart {
				spread(t)
			}
			for _, device := range []string{"shm", "tcp"} {
				t.Run(device, func(t *testing.T) {
					t.Parallel()
					var failed atomic.Int32
					again := make(chan struct{})
					require.NoError(t, runSoon(t, 3, device, func(s *script) {
						s.all(0)
						if s.me == 1 {
							short, cut := context.WithCancel(s.Ctx)
							waited := make(chan error, 1)
							go func() {
								defer cut()
								waited <- await.Until(s.Ctx, "the others to give up", func() bool { return failed.Load() == 2 })
							}()
							_, err := s.World.Shrink(short)
							s.Fails(err, context.Canceled)
							s.OK(<-waited)
							s.gaveUp(s.World.Barrier(s.Ctx), 1, "call Shrink again, or close this World")
							close(again)
						} else {
							s.gaveUp(s.World.Barrier(s.Ctx), 1, shrinkToo)
							failed.Add(1)
							s.wait("rank 1 to be cut short", again)
							s.gaveUp(s.World.Barrier(s.Ctx), 1, shrinkToo)
						}
						w, err := s.World.Shrink(s.Ctx)
						s.OK(err)
						s.Check(w.Size() == s.n, "%d ranks are left", w.Size())
						s.OK(w.Close())
					}))
				})
			}
		})
	}
}
