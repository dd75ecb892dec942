package sim_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// Tasks run in the order of their clocks.
func TestTasksRunInTheOrderOfTheirClocks(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	devices := []*sim.Device{s.Open(), s.Open(), s.Open()}
	var said []string
	for i, d := range devices {
		s.Go("", func() {
			for turn := range 3 {
				d.Compute(time.Duration(10+i) * time.Microsecond)
				d.Channel().Sleep(d.Channel().Prepare(), 0)
				said = append(said, fmt.Sprintf("%d.%d at %v", i, turn, d.Now()))
			}
		})
	}
	require.NoError(t, s.Run())
	require.Equal(t, []string{
		"0.0 at 10µs", "1.0 at 11µs", "2.0 at 12µs", "0.1 at 20µs", "1.1 at 22µs", "2.1 at 24µs", "0.2 at 30µs", "1.2 at 33µs", "2.2 at 36µs",
	}, said)
}

func TestSleepEndsAtItsLimitOrAtARing(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d, other := s.Open(), s.Open()
	run(t, s, func() {
		ticket := d.Channel().Prepare()
		d.Channel().Sleep(ticket, time.Hour)
		require.Equal(t, 5*time.Millisecond, d.Now(), "a ring by a task that is ahead is at its time")
		ticket = d.Channel().Prepare()
		d.Channel().Sleep(ticket, time.Second)
		require.Equal(t, time.Second+5*time.Millisecond, d.Now())
	}, func() {
		other.Compute(5 * time.Millisecond)
		d.Channel().Wake()
	})
}

// A post is stamped with the poster's clock, and what happens before it is not held up.
func TestClocksRunAheadUntilTheyAreSettled(t *testing.T) {
	p := sim.Ideal()
	p.Wire = time.Microsecond
	s := simtest.With(t, p, 1)
	a, b := two(t, s, 64)
	begun := a.Now()
	run(t, s, func() {
		a.Compute(time.Millisecond)
		a.set(7)
		a.post(b, verbs.OpRDMAWrite, verbs.Signalled, 8)
		require.Equal(t, time.Millisecond, a.Now()-begun)
		a.completions(1)
		require.Equal(t, time.Millisecond+2*time.Microsecond, a.Now()-begun)
	}, func() {
		b.until(func() bool { b.queue.Poll(nil); return b.word() == 7 })
		require.Equal(t, time.Millisecond+time.Microsecond, b.Now()-begun)
	})
}

func TestDeadlockIsReported(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	a, b := two(t, s, 64)
	var ended []string
	s.Go("sender", func() {
		defer func() { ended = append(ended, "sender") }()
		a.post(b, verbs.OpSend, verbs.Signalled, 8)
		a.completions(1)
	})
	s.Go("idler", func() {
		defer func() {
			ended = append(ended, "idler")
			b.completions(1) // ends at once
		}()
		b.Channel().Sleep(b.Channel().Prepare(), time.Second)
		b.Channel().Sleep(b.Channel().Prepare(), -1)
	})
	err := s.Run()
	var deadlock *sim.DeadlockError
	require.ErrorAs(t, err, &deadlock)
	require.Len(t, deadlock.Waiters, 2)
	require.Equal(t, "sender", deadlock.Waiters[0].Name)
	require.Equal(t, a.Address(), deadlock.Waiters[0].Device)
	require.Equal(t, []uint32{a.pairs[1].Number()}, deadlock.Waiters[0].Starved)
	require.Equal(t, b.Address(), deadlock.Waiters[1].Device)
	require.Equal(t, time.Second, deadlock.Now)
	require.True(t, strings.HasPrefix(err.Error(), "sim: deadlock at 1s: 2 tasks wait"), err)
	require.Equal(t, []string{"sender", "idler"}, ended)

	// The simulator is as good as before.
	run(t, s, func() { b.Compute(1) })
}

func TestDeadlockNamesSomeTasks(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d := s.Open()
	for range 20 {
		s.Go("one of many", func() { d.Channel().Sleep(d.Channel().Prepare(), -1) })
	}
	err := s.Run()
	require.ErrorContains(t, err, "20 tasks wait")
	require.ErrorContains(t, err, "and 12 more")
}

// Tasks that look again and again for what never comes are a deadlock to who has no more
// patience, but not those that compute.
func TestPatience(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	s.Patience(time.Second)
	d := s.Open()
	run(t, s, func() {
		for range 10 {
			d.Compute(time.Hour)
			d.PollConnections(nil)
		}
	})
	begun := d.Now()
	naps := 0
	for range 3 {
		s.Go("napping", func() {
			for {
				d.Channel().Sleep(d.Channel().Prepare(), 100*time.Millisecond)
				naps++
			}
		})
	}
	var deadlock *sim.DeadlockError
	require.ErrorAs(t, s.Run(), &deadlock)
	require.Len(t, deadlock.Waiters, 3)
	for _, w := range deadlock.Waiters {
		require.Equal(t, d.Address(), w.Device)
	}
	require.InDelta(t, 30, naps, 3)
	require.Equal(t, 1100*time.Millisecond, deadlock.Now-begun)
}

// A ring without an announced sleeper is not kept.
func TestRingsForNobody(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d := s.Open()
	run(t, s, func() {
		d.Compute(time.Second)
		d.Channel().Wake()
		before := s.Events()
		ticket := d.Channel().Prepare()
		d.Channel().Wake()
		d.Channel().Sleep(ticket, time.Hour)
		d.Channel().Finish()
		require.Equal(t, time.Second, d.Now())
		require.Equal(t, before+1, s.Events())
	})
}

func TestTasksBeginTasks(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	d := s.Open()
	var times []time.Duration
	run(t, s, func() {
		d.Compute(time.Second)
		s.Go("later", func() { times = append(times, d.Now()) })
		times = append(times, d.Now())
	})
	require.Equal(t, []time.Duration{time.Second, time.Second}, times)
}

// A panic and a Goexit of a task are Run's, and leave no goroutine behind.
func TestTasksThatDoNotReturn(t *testing.T) {
	for what, body := range map[string]func(){"panic": func() { panic("a task") }, "exit": runtime.Goexit} {
		t.Run(what, func(t *testing.T) {
			s := simtest.With(t, sim.Ideal(), 1)
			d := s.Open()
			ended := false
			s.Go("waiting", func() {
				defer func() { ended = true }()
				d.Channel().Sleep(d.Channel().Prepare(), -1)
			})
			s.Go("ending", func() {
				d.Channel().Sleep(d.Channel().Prepare(), time.Second)
				body()
			})
			var caught any
			done := make(chan struct{})
			go func() {
				defer close(done)
				defer func() { caught = recover() }()
				_ = s.Run()
			}()
			<-done
			require.Equal(t, what == "panic", caught != nil)
			require.True(t, ended)
			run(t, s, func() { d.Compute(1) })
		})
	}
}

func TestRunInRun(t *testing.T) {
	s := simtest.With(t, sim.Ideal(), 1)
	run(t, s, func() { require.ErrorContains(t, s.Run(), "running already") })
}

// The end of a peer is told by a task, at a time that the seed decides.
func TestWatchersAreTasks(t *testing.T) {
	p := sim.Ideal()
	p.Wire = time.Microsecond
	s := simtest.With(t, p, 1)
	a, b := two(t, s, 64)
	var cause error
	run(t, s, func() {
		_, err := a.Watch(b.Address(), func(lost error) {
			cause = lost
			a.Channel().Wake()
		})
		require.NoError(t, err)
		a.until(func() bool { return cause != nil })
		require.True(t, errors.Is(cause, verbs.ErrPeerGone))
		a.until(func() bool { return a.pairs[1].State() == verbs.StateError })
	}, func() {
		b.Compute(time.Second)
		require.NoError(t, b.Close())
	})
	require.GreaterOrEqual(t, a.Now(), time.Second+time.Microsecond)
}
