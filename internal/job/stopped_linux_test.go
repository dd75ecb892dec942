package job_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// silenceOfStopped is the time in which a rank that lives must have a processor, beside other tests, or is taken for dead.
const silenceOfStopped = 5 * time.Second

// registerWithSilence is register for ranks that take others for dead after a silence.
func registerWithSilence(name string, silence time.Duration, body func(s *script)) string {
	options := func() ([]world.Option, error) { return []world.Option{world.WithPeerTimeout(silence)}, nil }
	return jobtest.RegisterWith(name, options, scripted(body))
}

func init() {
	for name, call := range waits {
		registerWithSilence("stopped: "+name, silenceOfStopped, func(s *script) {
			s.OK(s.World.Barrier(s.Ctx))
			stopping(s, call)
		})
		registerWithSilence("stopped at first: "+name, silenceOfStopped, func(s *script) { stopping(s, call) })
	}
}

// stopping has rank 1 stop while the others call it.
func stopping(s *script, call func(s *script, ctx context.Context) error) {
	s.OK(jobtest.Hold("ready"))
	if s.me == 1 {
		s.OK(jobtest.Stop())
		excluded(s, call)
		s.OK(jobtest.Hold("excluded"))
		return
	}
	s.Lost(repeat(s, call), 1)
	for _, later := range waits {
		s.Lost(later(s, s.Ctx), 1)
	}
	small, err := s.World.Shrink(s.Ctx)
	s.OK(err)
	works(s, small, s.n-1)
	s.OK(jobtest.Hold("survived"))
	works(s, small, s.n-1)
	s.Check(job.Of(s.World).FailureCount() == 1, "%d ranks have failed", job.Of(s.World).FailureCount())
	s.OK(s.World.Close())
	s.OK(small.Close())
}

// works checks that a World has so many ranks, who reach each other.
func works(s *script, w *world.World, size int) {
	s.Check(w.Size() == size, "the World has %d ranks, want %d", w.Size(), size)
	sum := make([]int, 1)
	s.OK(world.AllReduce(s.Ctx, w, []int{1 << w.Rank()}, sum, add))
	s.Check(sum[0] == 1<<size-1, "sum is %d", sum[0])
}

// excluded is what a rank finds that the others have taken for dead: whomever it needs
// is lost, who does not take a new connection either. It is a World of its own.
func excluded(s *script, call func(s *script, ctx context.Context) error) {
	var lost *world.PeerError
	err := repeat(s, call)
	s.Check(errors.As(err, &lost), "error is %v, want a *world.PeerError", err)
	for rank := range s.n {
		if rank == s.me {
			continue
		}
		s.Lost(repeat(s, func(s *script, ctx context.Context) error {
			l, err := job.Of(s.World).Link(rank)
			if err != nil {
				return err
			}
			if err := l.Tell(&job.Message{Kind: job.FirstKind, Service: 1}, nil); err != nil {
				return err
			}
			return l.Flush(ctx)
		}), rank)
		s.Lost(s.World.Err(rank), rank)
	}
	alone, err := s.World.Shrink(s.Ctx)
	s.OK(err)
	works(s, alone, 1)
	s.OK(alone.Close())
	s.OK(s.World.Close())
}

func each(n int, f func(rank int)) {
	for rank := range n {
		f(rank)
	}
}

// A rank that is stopped while others wait for it, in any collective, is given up, and
// they go on in a World without it. When it is continued they stay as they are. It makes
// no difference whether anybody has met it before: a plain run tries one of both for half of the calls.
func TestStopped(t *testing.T) {
	t.Parallel()
	const n = 4
	for i, call := range slices.Sorted(maps.Keys(waits)) {
		for k, when := range []string{"stopped: ", "stopped at first: "} {
			if !testsize.Turn(i+k, 4) {
				continue
			}
			t.Run(when+call, func(t *testing.T) {
				jobtest.SilentPeers.Acquire(t)
				job := jobtest.StartWith(t, n, when+call, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
				each(n, func(rank int) { job.Await(rank, "ready") })
				each(n, job.Release)
				for _, rank := range []int{0, 2, 3} {
					job.Await(rank, "survived")
				}
				job.Continue(1)
				job.Await(1, "excluded")
				each(n, job.Release)
				for rank, err := range job.Wait() {
					require.NoError(t, err, "rank %d", rank)
				}
			})
		}
	}
}

// held is a job whose ranks share memory. One that is stopped holds up who waits for it,
// beyond any silence, and nobody is lost.
var held = jobtest.RegisterWith("stopped in shared memory",
	func() ([]world.Option, error) { return []world.Option{world.WithPeerTimeout(silenceOfHeld)}, nil },
	scripted(func(s *script) {
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(jobtest.Hold("ready"))
		if s.me == 1 {
			s.OK(jobtest.Stop())
		} else {
			ctx, cancel := context.WithTimeout(s.Ctx, 5*silenceOfHeld) // expires
			defer cancel()
			s.Fails(s.World.Barrier(ctx), context.DeadlineExceeded)
			jobtest.Signal("held up")
		}
		s.OK(s.World.Barrier(s.Ctx))
		works(s, s.World, s.n)
		s.Check(job.Of(s.World).FailureCount() == 0, "%d ranks have failed", job.Of(s.World).FailureCount())
	}))

// A strange job is of ranks that have never met, in which one stops while the others call, and another may leave.
type strange struct {
	call                 string
	ranks, stops, leaves int
}

func (j *strange) name() string {
	return fmt.Sprintf("%s, of %d rank %d stops, a stranger, and rank %d leaves", j.call, j.ranks, j.stops, j.leaves)
}

func (j *strange) body(s *script) {
	s.OK(jobtest.Hold("ready"))
	call := strangeWaits[j.call]
	var err error
	switch s.me {
	case j.leaves:
		return
	case j.stops:
		s.OK(jobtest.Stop())
		err = call(s, s.Ctx)
	default:
		ctx, cancel := context.WithTimeout(s.Ctx, 150*time.Millisecond) // expires
		defer cancel()
		err = call(s, ctx)
		// It may wait for others than the one that is stopped, or for none.
		s.Check(err == nil || errors.Is(err, context.DeadlineExceeded) || j.leaves >= 0 && errors.Is(err, world.ErrLeft), "error is %v", err)
		s.OK(jobtest.Hold("held up"))
		if err != nil && j.leaves < 0 {
			err = call(s, s.Ctx)
		}
	}
	if j.leaves >= 0 {
		return
	}
	s.OK(err)
	if j.call != "Shrink" {
		works(s, s.World, s.n)
	}
}

const nobody = -1

// strangeRanks are 11 in a large size.
var strangeRanks = testsize.PlainOrLarge(7, 11)

var strangeJobs = []strange{{"Barrier", strangeRanks, strangeRanks - 1, 3}}

// strangeWaits are those that end with their context beside a stranger.
var strangeWaits = maps.Clone(waits)

func init() {
	for _, call := range []string{"Barrier", "AllReduce", "AllGather", "a send of many letters"} {
		for _, stops := range []int{0, 1, strangeRanks - 1} {
			strangeJobs = append(strangeJobs, strange{call, strangeRanks, stops, nobody})
		}
	}
	for _, call := range slices.Sorted(maps.Keys(waits)) {
		strangeJobs = append(strangeJobs, strange{call, 2, 0, nobody}, strange{call, 2, 1, nobody})
	}
	strangeWaits["Split"] = func(s *script, ctx context.Context) error {
		team, err := s.World.Split(ctx, 0, s.me)
		if err == nil {
			err = team.Close()
		}
		return err
	}
	strangeWaits["Shrink"] = func(s *script, ctx context.Context) error {
		small, err := s.World.Shrink(ctx)
		if err == nil {
			works(s, small, s.n)
			err = errors.Join(s.World.Close(), small.Close())
		}
		return err
	}
	for _, stops := range []int{0, 1} {
		strangeJobs = append(strangeJobs, strange{"Split", 2, stops, nobody}, strange{"Shrink", 2, stops, nobody})
	}
	for i := range strangeJobs {
		// A call that waited for the stranger, and not for its context, would hang.
		registerWithSilence(strangeJobs[i].name(), 2*await.Limit, strangeJobs[i].body)
	}
}

// A call beside a rank that is stopped ends with its context, though the rank that calls has never met that one, which
// never answers then.
func TestStoppedStranger(t *testing.T) {
	busy.Acquire(t)
	for i, j := range strangeJobs {
		// A plain run has half of the calls, each with one of the ranks that stop.
		switch {
		case j.leaves >= 0:
		case j.ranks > 2 && !testsize.Turn(i+i/3, 6), j.ranks == 2 && !testsize.Turn(i+i/2, 4):
			continue
		}
		t.Run(j.name(), func(t *testing.T) {
			job := jobtest.Start(t, j.ranks, j.name())
			each(j.ranks, func(rank int) { job.Await(rank, "ready") })
			job.Release(j.stops)
			job.AwaitStop(j.stops)
			each(j.ranks, func(rank int) {
				if rank != j.stops {
					job.Release(rank)
				}
			})
			others := func(f func(rank int)) {
				each(j.ranks, func(rank int) {
					if rank != j.stops && rank != j.leaves {
						f(rank)
					}
				})
			}
			others(func(rank int) { job.Await(rank, "held up") })
			job.Continue(j.stops)
			others(job.Release)
			for rank, err := range job.Wait() {
				require.NoError(t, err, "rank %d", rank)
			}
		})
	}
}

const silenceOfHeld = 100 * time.Millisecond

func TestStoppedInSharedMemory(t *testing.T) {
	busy.Acquire(t)
	const n = 3
	job := jobtest.Start(t, n, held)
	each(n, func(rank int) { job.Await(rank, "ready") })
	each(n, job.Release)
	job.Await(0, "held up")
	job.Await(2, "held up")
	job.Continue(1)
	for rank, err := range job.Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}
