package progress_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
)

// A script is a channel, a clock and a Guard that write down what is done with them. A sleep takes as long as its limit, if
// nothing ends it before.
type script struct {
	steps []string
	now   time.Duration
	// ended and refused are the errors of the Guard.
	ended, refused error
	sleepers       []progress.Sleeper
	// asleep is called in a sleep, if it is not nil.
	asleep func()
	awake  bool
	// woken is closed by a wake, if it is not nil.
	woken chan struct{}
}

func (s *script) note(step string)   { s.steps = append(s.steps, step) }
func (s *script) Now() time.Duration { return s.now }
func (s *script) Prepare() uint32    { s.note("prepare"); s.awake = false; return 7 }
func (s *script) Finish()            { s.note("finish") }
func (s *script) Ended() error       { return s.ended }
func (s *script) BeforeSleep()       { s.note("before sleep") }

func (s *script) Wake() {
	s.note("wake")
	s.awake = true
	if s.woken != nil {
		close(s.woken)
	}
}

func (s *script) Sleep(ticket uint32, limit time.Duration) {
	s.note("sleep " + limit.String())
	if s.asleep != nil {
		s.asleep()
	}
	if ticket == 7 && !s.awake {
		s.now += limit
	}
}

func (s *script) MaySleep(_ context.Context, sleeper *progress.Sleeper) error {
	s.note("ask")
	s.sleepers = append(s.sleepers, *sleeper)
	return s.refused
}

func (s *script) Leave(_ *progress.Sleeper, restarted bool) {
	if restarted {
		s.note("leave to restart")
	} else {
		s.note("leave")
	}
}

// take returns the steps since it was called last.
func (s *script) take() string {
	steps := strings.Join(s.steps, ", ")
	s.steps = nil
	return steps
}

// engine returns one whose only Source finds what found returns.
func (s *script) engine(limits progress.Limits, found func() int) *progress.Engine {
	limits.Yield = func() { s.note("yield") }
	e := progress.New(progress.Config{Home: s, Now: s.Now, Limits: limits})
	e.Register(source{s, found})
	s.take()
	return e
}

type source struct {
	*script
	found func() int
}

func (s source) Poll(int) int { s.note("poll"); return s.found() }

func nothing() int { return 0 }

// pauses calls Pause n times.
func pauses(t *testing.T, wait *progress.Waiter, n int) {
	t.Helper()
	for range n {
		require.NoError(t, wait.Pause(t.Context()))
	}
}

// What a wait does, by its limits.
func TestSteps(t *testing.T) {
	asleep := "poll, ask, prepare, before sleep, poll, ask, sleep 1ms, finish, poll, ask, prepare, before sleep, poll, ask, sleep 40ms, finish"
	for _, c := range []struct {
		name   string
		limits progress.Limits
		pauses int
		want   string
	}{
		{"oversubscribed", progress.Limits{}, 4, asleep},
		{"yields", progress.Limits{Yields: 3}, 7, "poll, yield, poll, yield, poll, " + asleep},
		{"spins on memory", progress.Limits{SpinRounds: 2, SpinIterations: 10, RelaxedIterations: 5}, 10 + 1 + 5 + 1 + 5 + 4, "poll, poll, " + asleep},
		{"spins on the network", progress.Limits{SpinRounds: 3}, 3 + 4, "poll, poll, poll, " + asleep},
		{"without rounds spins nothing", progress.Limits{SpinIterations: 10}, 4, asleep},
	} {
		s := new(script)
		c.limits.LongestSleep = 40 * time.Millisecond
		wait := s.engine(c.limits, nothing).NewWaiter(s)
		pauses(t, &wait, c.pauses)
		wait.Finish()
		require.Equal(t, c.want+", leave", s.take(), c.name)
	}
}

// A wait does not spin while nothing can change.
func TestStill(t *testing.T) {
	s, still := new(script), false
	e := progress.New(progress.Config{Home: s, Now: s.Now, Still: func() bool { return still }, Limits: progress.Limits{SpinRounds: 3}})
	e.Register(source{s, nothing})
	wait := e.NewWaiter(nil)
	defer wait.Finish()
	pauses(t, &wait, 1)
	require.Equal(t, "poll", s.take())
	still = true
	pauses(t, &wait, 1)
	require.Equal(t, "poll, prepare, before sleep", s.take())
}

// What is found begins the spinning anew, and wakes others; a wait that has announced a sleep takes that back.
func TestFound(t *testing.T) {
	s, found := new(script), 0
	wait := s.engine(progress.Limits{SpinRounds: 1, LongestSleep: time.Second}, func() int { return found }).NewWaiter(s)
	pauses(t, &wait, 2)
	require.True(t, wait.AboutToSleep())
	found = 1
	pauses(t, &wait, 1)
	require.False(t, wait.AboutToSleep())
	require.Equal(t, "poll, poll, ask, prepare, before sleep, poll, wake, finish", s.take())
	found = 0
	pauses(t, &wait, 2)
	require.Equal(t, "poll, poll, ask, prepare, before sleep", s.take())
	wait.Finish()
	require.Equal(t, "finish, leave", s.take())
}

// A wait that is restarted spins, and has slept for no time. It is another wait for its Guard.
func TestRestart(t *testing.T) {
	s := new(script)
	wait := s.engine(progress.Limits{SpinRounds: 1, LongestSleep: 2 * time.Millisecond}, nothing).NewWaiter(s)
	wait.For(3)
	pauses(t, &wait, 4)
	require.True(t, wait.Slept() && wait.Quiet())
	require.True(t, wait.AboutToSleep())
	s.take()
	wait.Restart()
	pauses(t, &wait, 2)
	require.Equal(t, "finish, leave to restart, poll, poll, ask, prepare, before sleep", s.take())
	last := len(s.sleepers) - 1
	require.Equal(t, []progress.Sleeper{
		{Rank: 3}, {Rank: 3, Announced: true}, {Rank: 3, Since: 1, Until: progress.FirstSleep, Asleep: progress.FirstSleep}, {Rank: 3, Until: progress.FirstSleep},
	}, []progress.Sleeper{s.sleepers[0], s.sleepers[1], s.sleepers[2], s.sleepers[last]})
	wait.Finish()
}

// A wait that has not slept yet is for any rank, too, until it is for one.
func TestSleeperBeforeSleep(t *testing.T) {
	s := new(script)
	wait := s.engine(progress.Limits{}, nothing).NewWaiter(s)
	defer wait.Finish()
	require.Equal(t, -1, wait.Sleeper().Rank)
	wait.For(3)
	require.Equal(t, 3, wait.Sleeper().Rank)
}

// Sleeps that sum up to half of the longest are long, once each time. A sleep that was ended soon is not quiet.
func TestLong(t *testing.T) {
	s := new(script)
	wait := s.engine(progress.Limits{LongestSleep: 10 * time.Millisecond}, nothing).NewWaiter(s)
	defer wait.Finish()
	type seen struct{ slept, quiet, long bool }
	var all []seen
	took := []time.Duration{progress.FirstSleep / 2, progress.FirstSleep, 4 * time.Millisecond, progress.FirstSleep, 6 * time.Millisecond}
	for _, took := range took {
		s.asleep = func() {
			s.awake = true
			s.now += took
		}
		pauses(t, &wait, 2)
		all = append(all, seen{wait.Slept(), wait.Quiet(), wait.Long()})
	}
	require.Equal(t, []seen{{}, {true, true, false}, {true, true, true}, {true, true, false}, {true, true, true}}, all)
	s.asleep = nil
	wait.Brief()
	s.take()
	pauses(t, &wait, 2)
	require.Contains(t, s.take(), "sleep 1ms")
}

// An error of the Guard ends the wait: at once, before it announces a sleep, and before it sleeps.
func TestGuard(t *testing.T) {
	errGuard := errors.New("the guard says no")
	for _, c := range []struct {
		name string
		set  func(s *script)
		// before is how many times Pause returns nil.
		before int
		want   string
	}{
		{"ended", func(s *script) { s.ended = errGuard }, 0, "poll"},
		{"ended while it spins", func(s *script) { s.ended = errGuard }, 1, "poll, poll"},
		{"not to be announced", func(s *script) { s.refused = errGuard }, 1, "poll, poll, ask, leave"},
		{"not to sleep", func(s *script) { s.refused = errGuard }, 2, "poll, poll, ask, prepare, before sleep, poll, ask, finish, leave"},
		{"ended before it sleeps", func(s *script) { s.ended = errGuard }, 2, "poll, poll, ask, prepare, before sleep, poll, finish, leave"},
	} {
		s := new(script)
		wait := s.engine(progress.Limits{SpinRounds: 1}, nothing).NewWaiter(s)
		pauses(t, &wait, c.before)
		c.set(s)
		require.ErrorIs(t, wait.Pause(t.Context()), errGuard, c.name)
		wait.Finish()
		require.Equal(t, c.want, s.take(), c.name)
	}
}

// The goroutine that ends a wait wakes the sleepers afterwards. A wait that announces its sleep after the wake does not sleep.
func TestEndedAfterAnnouncement(t *testing.T) {
	errEnded := errors.New("ended")
	for name, end := range map[string]func(s *script, e *progress.Engine, endContext func()){
		"guard":        func(s *script, _ *progress.Engine, _ func()) { s.ended = errEnded },
		"interruption": func(_ *script, e *progress.Engine, _ func()) { e.Interrupt(errEnded) },
		"context": func(s *script, _ *progress.Engine, endContext func()) {
			s.woken = make(chan struct{})
			endContext()
			<-s.woken
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			s := new(script)
			e := s.engine(progress.Limits{LongestSleep: time.Second}, nothing)
			announced := 0
			e.Register(beforeSleep(func() {
				// The first sleep is short, whatever ends.
				if announced++; announced == 2 {
					end(s, e, func() { cancel(errEnded) })
				}
			}))
			wait := e.NewWaiter(s)
			defer wait.Finish()
			for range 2 {
				require.NoError(t, wait.Pause(ctx))
			}
			s.take()
			require.ErrorIs(t, wait.Pause(ctx), errEnded)
			require.NotContains(t, s.take(), "sleep 1s")
			require.Equal(t, name == "context", wait.Sleeper().Cut)
		})
	}
}

type beforeSleep func()

func (beforeSleep) Poll(int) int   { return 0 }
func (f beforeSleep) BeforeSleep() { f() }

// The end of a context ends a wait that is about to sleep, and one that has slept, whose sleep it ends.
func TestContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	s := new(script)
	wait := s.engine(progress.Limits{SpinRounds: 1, LongestSleep: time.Second}, nothing).NewWaiter(s)
	// The first sleep is short; in the second the wait hears of the end.
	for range 4 {
		require.NoError(t, wait.Pause(ctx))
	}
	s.woken = make(chan struct{})
	s.asleep = func() {
		end()
		<-s.woken
	}
	require.NoError(t, wait.Pause(ctx))
	require.ErrorIs(t, wait.Pause(ctx), context.Canceled)
	require.True(t, wait.Sleeper().Cut)
	wait.Restart()
	require.False(t, wait.Sleeper().Cut)
	wait.Finish()

	wait = s.engine(progress.Limits{SpinRounds: 1}, nothing).NewWaiter(s)
	require.NoError(t, wait.Pause(ctx), "while it spins")
	require.ErrorIs(t, wait.Pause(ctx), context.Canceled)
	wait.Finish()
}

// The end of a context wakes nobody after the end of its wait: the device may be closed by then.
func TestFinishForgetsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		s := new(script)
		wait := s.engine(progress.Limits{LongestSleep: time.Second}, nothing).NewWaiter(s)
		// After the first sleep the wait asks its context to end the next.
		for range 3 {
			require.NoError(t, wait.Pause(ctx))
		}
		wait.Finish()
		s.take()
		end()
		synctest.Wait()
		require.Empty(t, s.take())
	})
}

// An interruption ends the waits that have begun, each once.
func TestInterrupt(t *testing.T) {
	errShort := errors.New("short of descriptors")
	s := new(script)
	e := s.engine(progress.Limits{}, nothing)
	before := e.NewWaiter(nil)
	e.Interrupt(errShort)
	after := e.NewWaiter(nil)
	require.ErrorIs(t, before.Pause(t.Context()), errShort)
	require.NoError(t, before.Pause(t.Context()))
	require.NoError(t, after.Pause(t.Context()))
	before.Finish()
	after.Finish()
	s.take()
	e.Interrupt(errShort)
	require.Equal(t, "wake", s.take())
}

// Sources are polled in order, and know what those before them have found. What Drain finds it looks for again.
func TestSources(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{}, func() int { return 2 })
	var before []int
	left := 3
	e.Register(progress.SourceFunc(func(n int) int {
		before = append(before, n)
		if left == 0 {
			return 0
		}
		left--
		return 1
	}))
	e.Register(progress.SourceFunc(func(n int) int { before = append(before, n); return 0 }))
	require.Equal(t, 3, e.Poll())
	require.Equal(t, []int{2, 3}, before)
	require.Equal(t, "poll, wake", s.take())
	e.Drain(2)
	require.Equal(t, []int{2, 3, 2, 3, 2, 3}, before)
	e.Exclude(func() { require.Equal(t, uint64(3), e.Polls()) })
	quiet := new(script)
	e = quiet.engine(progress.Limits{}, nothing)
	e.Drain(5)
	require.Equal(t, "poll", quiet.take())
}

// A last poll that another goroutine is in the way of is made up for when that gives the mutex back. Other polls are not.
func TestSleepBesidePoll(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{SpinRounds: 1, LongestSleep: time.Second}, nothing)
	wait := e.NewWaiter(s)
	pauses(t, &wait, 2)
	s.take()
	e.Lock()
	pauses(t, &wait, 1)
	require.Equal(t, "ask, sleep 1ms, finish", s.take())
	e.Unlock()
	require.Equal(t, "poll", s.take())
	// Later sleeps are longer, but not if the other goroutine has yet to poll.
	pauses(t, &wait, 1)
	s.take()
	e.Lock()
	pauses(t, &wait, 1)
	require.Equal(t, "ask, sleep 1ms, finish", s.take())
	e.Unlock()
	require.Equal(t, "poll", s.take())
	e.Lock()
	other := e.NewWaiter(s)
	pauses(t, &other, 1)
	e.Unlock()
	require.Empty(t, s.take())
	wait.Finish()
	other.Finish()
}

// What Unlock polls for one sleeper may be too early for another: then it polls once more.
func TestSleepBesidePollOfUnlock(t *testing.T) {
	s := new(script)
	inPoll := func() {}
	e := s.engine(progress.Limits{LongestSleep: time.Second}, func() int { inPoll(); return 0 })
	first, second := e.NewWaiter(s), e.NewWaiter(s)
	defer first.Finish()
	defer second.Finish()
	pauses(t, &first, 1)
	pauses(t, &second, 1)
	e.Lock()
	pauses(t, &first, 1)
	s.take()
	inPoll = func() {
		inPoll = func() {}
		pauses(t, &second, 1)
	}
	e.Unlock()
	require.Equal(t, "poll, ask, sleep 1ms, finish, poll", s.take())
}

var _ verbs.CompletionChannel = (*script)(nil)
