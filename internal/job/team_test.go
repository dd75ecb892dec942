package job_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// split splits the World of a script, which must do well.
func (s *script) split(color, key int) (team *script) {
	s.call(func(ctx context.Context) error {
		w, err := s.World.Split(ctx, color, key)
		if err == nil && w != nil {
			team = scriptOf(s.Ctx, w)
			team.hasty = s.hasty
		}
		return err
	})
	return team
}

// all makes every collective call once, with a root.
func (s *script) all(root int) {
	for _, call := range longs.calls(s, root, 5) {
		call()
	}
}

// teams makes teams of odd and even ranks, backwards, and of these again, has all of them
// make every call side by side, and closes some of them.
func teams(s *script) {
	none := s.split(-1, s.me)
	s.Check(none == nil, "a rank that wants no team is in one")
	half := s.split(s.me%2, -s.me)
	s.Check(half.n == (s.n+1-s.me%2)/2, "team of %d ranks of %d", half.n, s.n)
	s.Check(half.me == half.n-1-s.me/2, "rank %d of %d is %d of %d", s.me, s.n, half.me, half.n)
	for rank := range half.n {
		s.Check(half.World.InJob(rank) == 2*(half.n-1-rank)+s.me%2, "rank %d is %d in the job", rank, half.World.InJob(rank))
	}
	alone := half.split(half.me, 0)
	s.Check(alone.n == 1 && alone.World.InJob(0) == s.me, "a team of one has %d", alone.n)
	again := half.split(half.me/2, 0)
	for range 3 {
		s.all(s.n - 1)
		half.all(0)
		again.all(again.n - 1)
		alone.all(0)
	}
	s.OK(half.World.Close())
	s.Fails(half.World.Barrier(s.Ctx), world.ErrClosed)
	again.all(0)
	s.all(0)
	more := s.split(0, 0)
	more.all(0)
}

var (
	severalTeams = register("teams", teams)
	hastyTeams   = register("hasty teams", func(s *script) {
		s.hasty = true
		teams(s)
	})
)

func TestTeams(t *testing.T) {
	busy.Acquire(t)
	for i, n := range []int{1, 2, 5, 8} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { inForms(t, someForms(2*i, n, 2), n, severalTeams) })
	}
}

func TestTeamsOfTheHasty(t *testing.T) {
	busy.Acquire(t)
	for i, n := range []int{2, 5} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { inForms(t, someForms(2*i+1, n, 2), n, hastyTeams) })
	}
}

func TestTeamsInVirtualTime(t *testing.T) {
	busy.Acquire(t)
	for _, n := range []int{2, 7, 33} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), n, scripted(teams)))
		})
	}
}

// A rank that dies is an error in every team that it is in, by its number there, and in no
// other.
var deathInTeams = register("death in teams", func(s *script) {
	row, column := s.split(s.me/3, s.me), s.split(s.me%3, s.me)
	row.all(0)
	column.all(0)
	jobtest.Signal("ready")
	s.OK(jobtest.Hold("killed"))
	if s.me == 4 {
		<-s.Ctx.Done()
	}
	for _, name := range slices.Sorted(maps.Keys(waits)) {
		for _, team := range []*script{row, column} {
			if team == row && s.me/3 != 1 || team == column && s.me%3 != 1 {
				s.OK(waits[name](team, s.Ctx))
				s.Check(job.Of(team.World).FailureCount() == 0, "%s: %d ranks have failed", name, job.Of(team.World).FailureCount())
				continue
			}
			err := repeat(team, waits[name])
			team.Lost(err, 1)
			s.Check(strings.Contains(err.Error(), "(it is rank 4 of the job)"), "%s: %v", name, err)
		}
	}
	s.Lost(repeat(s, waits["Barrier"]), 4)
})

func TestDeathInTeams(t *testing.T) {
	busy.Acquire(t)
	job := jobtest.Start(t, 9, deathInTeams)
	for rank := range 9 {
		job.Await(rank, "ready")
	}
	killed := time.Now()
	job.Kill(4)
	for rank := range 9 {
		if rank != 4 {
			job.Release(rank)
		}
	}
	for rank, err := range job.Wait() {
		if rank == 4 {
			require.ErrorContains(t, err, "killed")
		} else {
			require.NoError(t, err, "rank %d", rank)
		}
	}
	t.Logf("%v from the kill to the end of all", time.Since(killed))
}

// Ranks that disagree on what they call are told so, and who is in no team any more is not
// waited for.
func TestSplitUnlikeOthers(t *testing.T) {
	err := run(t, 3, func(s *script) {
		if s.me == 1 {
			s.Fails(s.World.Barrier(s.Ctx), world.ErrMismatch)
			return
		}
		_, err := s.World.Split(s.Ctx, 0, 0)
		s.Fails(err, world.ErrMismatch)
		s.Check(err != nil && len(err.Error()) > 0, "%v", err)
	})
	require.NoError(t, err)
}

// A rank that closes a team while others need it is missed there, and not in the job.
func TestLeftTeam(t *testing.T) {
	require.NoError(t, run(t, 3, func(s *script) {
		team := s.split(0, 0)
		if s.me == 1 {
			s.OK(team.World.Close())
		} else {
			err := team.World.Barrier(s.Ctx)
			team.Lost(err, 1)
			s.Fails(err, world.ErrLeft)
			s.OK(team.World.Close())
		}
		s.all(0)
	}))
}

// A rank that leaves the job with a team open is missed in the job, by those who have not closed the team.
func TestLeftWithTeam(t *testing.T) {
	for _, device := range []string{"shm", "tcp"} {
		t.Run(device, func(t *testing.T) {
			require.NoError(t, runSoon(t, 3, device, func(s *script) {
				s.split(0, 0)
				if s.me == 1 {
					s.OK(s.World.Close())
					return
				}
				s.Fails(s.World.Barrier(s.Ctx), world.ErrLeft)
			}))
		})
	}
}

// That a rank of a team has failed ends Close of it, whatever it was that has ended the rank.
func TestFailedTeam(t *testing.T) {
	split := make(chan struct{})
	require.ErrorIs(t, runSoon(t, 2, "shm", func(s *script) {
		team := s.split(0, 0)
		if s.me == 0 {
			<-split
			s.OK(context.DeadlineExceeded)
		}
		close(split)
		s.OK(team.World.Close())
	}), context.DeadlineExceeded)
}

// What is called in the place of a Split that was cut short is refused.
func TestSplitIsFinishedFirst(t *testing.T) {
	refused := make(chan struct{})
	require.NoError(t, run(t, 2, func(s *script) {
		if s.me == 1 {
			<-refused
		} else {
			_, err := s.World.Split(ended, 1, 0)
			s.Fails(err, context.Canceled)
			_, err = s.World.Split(s.Ctx, 2, 0)
			s.Fails(err, world.ErrUnfinished)
			s.Fails(s.World.Barrier(s.Ctx), world.ErrUnfinished)
			refused <- struct{}{}
		}
		team := s.split(1, 0)
		team.all(0)
	}))
}

// Survivors of a failure in a team go on in a World of their own.
func TestTeamShrinks(t *testing.T) {
	var split sync.WaitGroup
	split.Add(4)
	err := run(t, 4, func(s *script) {
		team := s.split(0, -s.me)
		split.Done()
		if s.me == 1 {
			split.Wait()
			s.OK(errBody)
		}
		team.Lost(repeat(team, waits["Barrier"]), 2)
		w, err := team.World.Shrink(s.Ctx)
		s.OK(err)
		small := scriptOf(s.Ctx, w)
		s.Check(small.n == 3, "%d ranks are left", small.n)
		small.all(0)
		s.OK(w.Close())
	})
	require.EqualError(t, err, "world: rank 1: body failed")
}

// A rank dies in Split, which ends well on some of the others and not on the rest. Those that have the team can close
// it, whether the dead rank is in that or not, and all can Shrink.
func TestSplitDiesOnSome(t *testing.T) {
	busy.Acquire(t)
	for _, device := range []string{"shm", "tcp"} {
		for victim := range 4 {
			for times := 1; times <= 3; times++ {
				for k, apart := range []bool{false, true} {
					if !testsize.Turn(victim+times+k, 2) {
						continue
					}
					name := fmt.Sprintf("%s/rank %d in call %d, apart %v", device, victim, times, apart)
					t.Run(name, func(t *testing.T) { splitDiesOnSome(t, device, victim, times, apart) })
				}
			}
		}
	}
}

func splitDiesOnSome(t *testing.T, device string, victim, times int, apart bool) {
	err := runSoon(t, 4, device, func(s *script) {
		color := 0
		if apart && s.me == victim {
			color = 1
		}
		if s.me == victim {
			for range times {
				if _, err := s.World.Split(ended, color, 0); err == nil {
					break
				}
				time.Sleep(2 * time.Millisecond) // computes
			}
			s.OK(errBody)
		}
		if team, err := s.World.Split(s.Ctx, color, 0); err == nil {
			s.OK(team.Close())
		}
		small, err := s.World.Shrink(s.Ctx)
		s.OK(err)
		s.Check(small.Size() == 3, "%d ranks are left", small.Size())
		s.OK(small.Close())
	})
	require.ErrorIs(t, err, errBody)
}

// errTooSoon: ranks have not come as far within a time as a test wants to have them.
var errTooSoon = errors.New("the time was too short")

// tooSoon is the error of a Split that others had to come further in before they gave it up. It wraps no PeerError: an error of
// another rank, which waits for this one in vain, would be taken for the cause.
func tooSoon(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %v", errTooSoon, err)
}

// longerAndLonger calls a test with times, each longer than the one before, while it ends with errTooSoon.
func longerAndLonger(t *testing.T, test func(within time.Duration) error) {
	t.Helper()
	var err error
	for within := 20 * time.Millisecond; within < await.Limit/4; within *= 4 {
		if err = test(within); !errors.Is(err, errTooSoon) {
			break
		}
		t.Logf("within %v: %v", within, err)
	}
	require.NoError(t, err)
}

// A rank whose Split was cut short, and which closes what it has split, is not waited for by one that has the team.
func TestSplitIsGivenUp(t *testing.T) {
	busy.Acquire(t)
	for _, device := range []string{"shm", "tcp"} {
		for _, teams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/of a team %v", device, teams), func(t *testing.T) {
				longerAndLonger(t, func(within time.Duration) error { return splitIsGivenUp(t, device, teams, within) })
			})
		}
	}
}

func splitIsGivenUp(t *testing.T, device string, teams bool, within time.Duration) error {
	begun, made, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	return runSoon(t, 2, device, func(s *script) {
		w := s.World
		if teams {
			w = s.split(0, 0).World
		}
		if s.me == 0 {
			s.wait("the first Split", begun)
			ctx, cancel := context.WithTimeout(s.Ctx, within)
			defer cancel()
			_, err := w.Split(ctx, 0, 0)
			s.Fails(err, context.DeadlineExceeded)
			close(made)
			s.OK(w.Close())
			s.wait("the other's Close", closed)
			return
		}
		defer close(closed)
		_, err := w.Split(ended, 0, 0)
		s.Fails(err, context.Canceled)
		close(begun)
		s.wait("a Split that is cut", made)
		team, err := w.Split(s.Ctx, 0, 0)
		s.OK(tooSoon(err))
		s.OK(team.Close())
		s.OK(w.Close())
	})
}

// A rank whose Split was cut short, and which shrinks what it has split, is not waited for by one that has the team.
func TestSplitIsGivenUpByShrink(t *testing.T) {
	// The first rank tells the others what all have told it.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, device := range []string{"shm", "tcp"} {
		t.Run(device, func(t *testing.T) {
			longerAndLonger(t, func(within time.Duration) error { return splitIsGivenUpByShrink(t, device, within) })
		})
	}
}

func splitIsGivenUpByShrink(t *testing.T, device string, within time.Duration) error {
	bid, stood, split := make(chan struct{}, 2), make(chan struct{}, 2), make(chan struct{}, 2)
	told := make(chan struct{})
	both := func(s *script, what string, ranks <-chan struct{}) {
		s.wait(what, ranks)
		s.wait(what, ranks)
	}
	err := runSoon(t, 3, device, func(s *script) {
		cut := func(patience time.Duration) {
			ctx, cancel := context.WithTimeout(s.Ctx, patience) // expires
			defer cancel()
			_, err := s.World.Split(ctx, s.me/2, 0)
			s.Fails(err, context.DeadlineExceeded)
		}
		if s.me == 0 {
			both(s, "the others' first Splits", bid)
			cut(within)
			close(told)
			both(s, "the others' second Splits", stood)
		} else {
			cut(0)
			bid <- struct{}{}
			s.wait("a Split that is cut", told)
			cut(within)
			stood <- struct{}{}
		}
		if s.me != 1 {
			// If rank 1 has given its Split up before it heard of the others', it never has what they wait for.
			ctx, cancel := context.WithTimeout(s.Ctx, 4*within) // expires
			defer cancel()
			team, err := s.World.Split(ctx, s.me/2, 0)
			split <- struct{}{}
			s.OK(tooSoon(err))
			if s.me == 2 {
				both(s, "the last Splits", split)
				s.OK(errBody)
			}
			s.OK(team.Close())
		}
		small, err := s.World.Shrink(s.Ctx)
		s.OK(err)
		s.Check(small.Size() == 2, "%d ranks are left", small.Size())
		s.OK(small.Close())
	})
	var failed *world.RankError
	if !errors.As(err, &failed) || failed.Rank != 2 || !errors.Is(err, errBody) {
		return fmt.Errorf("error is %w, want that the body of rank 2 has failed", err)
	}
	return nil
}

// wait waits for another rank of runSoon, and ends the body if one has failed.
func (s *script) wait(what string, done <-chan struct{}) {
	select {
	case <-done:
	case <-s.failed:
		s.Check(false, "waiting for %s: another rank has failed", what)
	}
}

// runSoon is run over a device, which is not to hang.
func runSoon(t *testing.T, n int, device string, body func(s *script)) error {
	t.Helper()
	failed := make(chan struct{})
	fail := sync.OnceFunc(func() { close(failed) })
	told := func(s *script) {
		returned := false
		defer func() {
			if !returned {
				fail()
			}
		}()
		s.failed = failed
		body(s)
		returned = true
	}
	ran := make(chan error, 1)
	go func() { ran <- world.Run(t.Context(), n, scripted(told), world.WithDevice(device)) }()
	return await.Receive(t, "the ranks to end", ran)
}

// What it takes to make a team of half of the ranks, to sum over it, which connects its ranks, and
// to close it; beside that the Barrier of all.
func BenchmarkSplit(b *testing.B) {
	for _, device := range []string{"shm", "tcp"} {
		for _, n := range []int{8, 64} {
			b.Run(fmt.Sprintf("%s/%d ranks", device, n), func(b *testing.B) {
				b.ReportAllocs()
				require.NoError(b, world.Run(b.Context(), n, func(ctx context.Context, w *world.World) error {
					for range b.N {
						team, err := w.Split(ctx, w.Rank()%2, 0)
						if err != nil {
							return err
						}
						if err := world.AllReduce(ctx, team, make([]int, 1), make([]int, 1), add[int]); err != nil {
							return err
						}
						if err := team.Close(); err != nil {
							return err
						}
					}
					return w.Barrier(ctx)
				}, world.WithDevice(device)))
			})
		}
	}
}
