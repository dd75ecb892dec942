package window_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// silence is after how long a rank that is stopped is taken for dead. silenceVariable
// sets it for one rank.
const (
	silence         = 5 * time.Second
	silenceVariable = "RMA_WINDOWTEST_SILENCE"
)

// never is a silence that no test lasts for.
const never = time.Hour

func impatient() ([]world.Option, error) {
	after := silence
	if text := os.Getenv(silenceVariable); text != "" {
		var err error
		if after, err = time.ParseDuration(text); err != nil {
			return nil, err
		}
	}
	return []world.Option{world.WithPeerTimeout(after)}, nil
}

// registerImpatient is register for ranks that take others soon for dead.
func registerImpatient(name string, body func(s *script)) string {
	return jobtest.RegisterWith(name, impatient, scripted(body))
}

// runStopped runs a body whose victim stops itself and is continued when the others have
// gone on without it. All are held before, at "ready".
func runStopped(t *testing.T, name string, environment func(rank int) []string) {
	t.Helper()
	job := jobtest.StartWith(t, deathRanks, name, environment)
	for rank := range deathRanks {
		job.Await(rank, "ready")
	}
	goOnWithout(t, job)
}

// goOnWithout releases all, of which the victim then stops itself. The survivors are held
// when they have gone on, at "survived", and the victim, which is continued then, when it
// knows, at "excluded".
func goOnWithout(t *testing.T, job *jobtest.Job) {
	t.Helper()
	for rank := range deathRanks {
		job.Release(rank)
	}
	job.Await(0, "survived")
	job.Await(2, "survived")
	job.Continue(victim)
	job.Await(victim, "excluded")
	for rank := range deathRanks {
		job.Release(rank)
	}
	for rank, err := range job.Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}

func overTCP(int) []string { return []string{"RMA_DEVICE=tcp"} }

func init() {
	for _, d := range deaths {
		registerImpatient("stopped in "+d.name, func(s *script) { stopping(s, d) })
	}
}

// stopping is dying, but for a victim that comes back, and tries to write.
func stopping(s *script, d death) {
	win, kept := allocate[int64](s, deathElements), allocate[int64](s, 4)
	if d.prepare != nil {
		d.prepare(s, win)
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(jobtest.Hold("ready"))
	switch s.World.Rank() {
	case victim:
		s.OK(jobtest.Stop())
		for _, target := range []int{0, 2} {
			expectExcluded(s, intrude(s, kept, target))
		}
		for rank := range s.World.Size() {
			if rank != victim {
				s.Lost(s.World.Err(rank), rank)
			}
		}
		s.OK(jobtest.Hold("excluded"))
		return
	case 0:
		err := d.wait(s.Ctx, s, win)
		if d.breaks {
			s.OK(err)
			s.OK(win.Unlock(s.Ctx, 2))
		} else {
			s.Lost(err, victim)
		}
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		s.OK(win.Put([]int64{42}, 2, 1))
		s.OK(win.Unlock(s.Ctx, 2))
	default:
		awaitWritten(s, win, 1)
		// Rank 0 may know before this rank does.
		awaitFailure(s)
	}
	s.OK(jobtest.Hold("survived"))
	equal(s, "what nobody has written to", kept.Local(), make([]int64, 4))
	s.OK(win.Close())
	s.OK(kept.Close())
}

// intrude writes to a rank until that fails.
func intrude(s *script, win *window.Window[int64], target int) error {
	for {
		err := win.Lock(s.Ctx, window.Shared, target)
		if err != nil {
			return err
		}
		err = errors.Join(win.Put([]int64{-1}, target, 0), win.Unlock(s.Ctx, target))
		if err != nil {
			return err
		}
	}
}

// expectExcluded checks what a rank finds that was given up: the others are gone.
func expectExcluded(s *script, err error) {
	var lost *world.PeerError
	s.Check(errors.As(err, &lost), "error is %v, want a *world.PeerError", err)
}

// A process that is stopped says nothing. Who waits for it, in whatever call, hears
// after the silence that it has failed, and goes on with the others. When it is
// continued it hears that it is on its own, and changes nothing of theirs.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, i := range testsize.Turns(0, len(deaths), len(deaths)/4) {
		d := deaths[i]
		t.Run(d.name, func(t *testing.T) {
			jobtest.SilentPeers.Acquire(t)
			runStopped(t, "stopped in "+d.name, overTCP)
		})
	}
}

// much is more than the system keeps of a connection.
var much = testsize.PlainOrLarge(12<<20/8, 32<<20/8)

// lateWriter stops in the middle of writing to rank 2, under a shared lock.
var lateWriter = registerImpatient("stopped while it writes", func(s *script) {
	win := allocate[int64](s, much)
	if s.World.Rank() == victim {
		s.OK(win.Lock(s.Ctx, window.Shared, 2))
		s.OK(win.Put([]int64{1}, 2, 0))
		s.OK(win.Flush(s.Ctx, 2))
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(jobtest.Hold("ready"))
	switch s.World.Rank() {
	case victim:
		ones := make([]int64, much)
		for i := range ones {
			ones[i] = 1
		}
		under := make(chan error, 1)
		go func() {
			for {
				if err := errors.Join(win.Put(ones, 2, 0), win.Flush(s.Ctx, 2)); err != nil {
					under <- err
					return
				}
			}
		}()
		s.OK(jobtest.Hold("stopping"))
		s.OK(jobtest.Stop())
		expectExcluded(s, <-under)
		s.OK(jobtest.Hold("excluded"))
		return
	case 0:
		// The lock of the victim is broken when rank 2 knows that it has failed.
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		s.OK(win.Put(make([]int64, much), 2, 0))
		s.OK(win.Unlock(s.Ctx, 2))
		s.OK(jobtest.Hold("survived"))
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		got := make([]int64, much)
		s.OK(win.Get(got, 2, 0))
		s.OK(win.Unlock(s.Ctx, 2))
		equal(s, "what was written under the lock of the survivor", got, make([]int64, much))
		s.OK(win.Lock(s.Ctx, window.Exclusive, 2))
		s.OK(win.Put([]int64{42}, 2, 0))
		s.OK(win.Unlock(s.Ctx, 2))
	default:
		awaitFailure(s)
		s.OK(jobtest.Hold("survived"))
		// Nobody waits for rank 0 in Close, since one has failed: it is to be done before.
		awaitWritten(s, win, 0)
	}
	s.OK(win.Close())
})

// What a rank writes late, because it was stopped under its lock, does not come where
// another has the lock since. Rank 2 is written to, and knows of the failure by its own
// clock, or only because rank 0 has told it, by a message or where they share memory.
func TestStoppedWhileWriting(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		rank int
		over func(rank int) []string
	}{
		{"all notice", -1, overTCP},
		{"rank 2 is told", 2, overTCP},
		{"all notice, and one maps rank 2", -1, machines[2].environment},
		{"rank 2 is told by one that maps it", 2, machines[2].environment},
	}
	for _, i := range testsize.Turns(0, len(cases), 2) {
		c := cases[i]
		t.Run(c.name, func(t *testing.T) {
			jobtest.SilentPeers.Acquire(t)
			job := jobtest.StartWith(t, deathRanks, lateWriter, func(rank int) []string {
				more := c.over(rank)
				if rank == c.rank {
					more = append(more, silenceVariable+"="+never.String())
				}
				return more
			})
			for rank := range deathRanks {
				job.Await(rank, "ready")
			}
			job.Release(victim)
			job.Await(victim, "stopping")
			goOnWithout(t, job)
		})
	}
}

// unread has a survivor write to one that has stopped, more than the system keeps.
var unread = registerImpatient("stopped while it is written to", func(s *script) {
	win := allocate[int64](s, much)
	if s.World.Rank() == 0 {
		s.OK(win.LockAll(s.Ctx))
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(jobtest.Hold("ready"))
	switch s.World.Rank() {
	case victim:
		s.OK(jobtest.Stop())
		expectExcluded(s, intrude(s, win, 0))
		s.OK(jobtest.Hold("excluded"))
		return
	case 0:
		values := make([]int64, much)
		s.Lost(flood(s.Ctx, win, values), victim)
		// The buffer is the program's again, and the other still listens.
		clear(values)
		s.OK(win.Put(values, 2, 0))
		s.OK(win.Flush(s.Ctx, 2))
		s.Lost(win.UnlockAll(s.Ctx), victim)
	}
	s.OK(jobtest.Hold("survived"))
	s.OK(win.Close())
})

// flood writes to the victim until that fails.
func flood(ctx context.Context, win *window.Window[int64], values []int64) error {
	for {
		if err := errors.Join(win.Put(values, victim, 0), win.Flush(ctx, victim)); err != nil {
			return err
		}
	}
}

// A rank that does not read any more is given up like one that says nothing.
func TestStoppedWhileWrittenTo(t *testing.T) {
	jobtest.SilentPeers.Acquire(t)
	runStopped(t, unread, overTCP)
}
