package progress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/progress"
)

// What is to be retried is tried in each poll until it is done, and may have something else retried.
func TestRetry(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{}, nothing)
	tries := 0
	e.TryAgain()
	require.Empty(t, s.take())
	e.Exclude(func() {
		e.Retry(func() bool {
			if tries++; tries < 3 {
				return false
			}
			e.Retry(func() bool { s.note("next"); return true })
			return true
		})
	})
	for _, want := range []string{"poll", "poll", "poll", "poll, next"} {
		require.Equal(t, want == "poll, next", tries == 3)
		e.TryAgain()
		require.Equal(t, want, s.take())
	}
	e.TryAgain()
	require.Empty(t, s.take())
}

// A function that panics is not tried again. Those beside it are.
func TestRetryPanics(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{}, nothing)
	tries := 0
	e.Exclude(func() {
		e.Retry(func() bool { s.note("before"); return false })
		e.Retry(func() bool {
			if tries++; tries == 3 {
				panic("a function to be retried")
			}
			return false
		})
		e.Retry(func() bool { s.note("after"); return false })
	})
	for range 2 {
		e.Poll()
	}
	s.take()
	require.Panics(t, func() { e.Poll() })
	for range 2 {
		e.TryAgain()
	}
	require.Equal(t, "poll, before, poll, before, after, poll, before, after", s.take())

	e = s.engine(progress.Limits{}, nothing)
	e.Exclude(func() { e.Retry(func() bool { panic("the only function to be retried") }) })
	require.Panics(t, func() { e.Poll() })
	require.Equal(t, "poll", s.take())
	e.TryAgain()
	require.Empty(t, s.take())
}

// What is deferred is done once, after the poll, without the mutex, and not by a poll on the way.
func TestDefer(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{}, nothing)
	e.Defer(func() { e.Exclude(func() { s.note("deferred") }) })
	e.PollUncounted()
	e.Poll()
	e.Poll()
	require.Equal(t, "poll, poll, deferred, poll", s.take())
}

// A deferred function that panics leaves those after it to the next poll.
func TestDeferPanics(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{}, nothing)
	e.Defer(func() { s.note("first") })
	e.Defer(func() {
		e.Defer(func() { s.note("new") })
		panic("a deferred function")
	})
	e.Defer(func() { s.note("last") })
	require.Panics(t, func() { e.Poll() })
	e.Poll()
	e.Poll()
	require.Equal(t, "poll, first, poll, last, new, poll", s.take())
}

// A Source that calls Poll has the mutex, so nothing that was deferred is run.
func TestDeferInSource(t *testing.T) {
	s := new(script)
	e := s.engine(progress.Limits{}, nothing)
	e.Register(progress.SourceFunc(func(int) int { return e.Poll() }))
	e.Defer(func() {
		if e.TryLock() {
			s.note("deferred")
			e.Unlock()
		} else {
			s.note("deferred with the mutex")
		}
	})
	e.PollUncounted()
	require.Equal(t, "poll", s.take())
	e.Poll()
	require.Equal(t, "poll, deferred", s.take())
}

// A Source that panics leaves the mutex free. A sleeper whose poll that was polls again soon.
func TestPanic(t *testing.T) {
	s, panics := new(script), false
	e := s.engine(progress.Limits{LongestSleep: time.Second}, nothing)
	e.Register(progress.SourceFunc(func(int) int {
		if panics {
			panic("a Source")
		}
		return 0
	}))
	wait := e.NewWaiter(s)
	defer wait.Finish()
	pauses(t, &wait, 3)
	s.take()
	e.Lock()
	pauses(t, &wait, 1)
	panics = true
	require.Panics(t, e.Unlock)
	require.Equal(t, "ask, sleep 1ms, finish, poll", s.take())
	for _, poll := range []func(){func() { e.Poll() }, func() { e.Drain(1) }} {
		require.Panics(t, poll)
		require.True(t, e.TryLock())
		e.Unlock()
		require.Equal(t, "poll", s.take())
	}
	panics = false
	pauses(t, &wait, 2)
	require.Equal(t, "poll, ask, prepare, before sleep, poll, ask, sleep 1s, finish", s.take())
}

// A rank that computes in virtual time makes progress meanwhile.
func TestCompute(t *testing.T) {
	s := new(script)
	found := []int{0, 1, 0}
	e := progress.New(progress.Config{Home: s, Now: s.Now, Charger: charger{s}})
	e.Register(source{s, func() (n int) { n, found = found[0], found[1:]; return n }})
	s.take()
	e.Compute(10 * time.Millisecond)
	require.Equal(t, 20*time.Millisecond, s.now)
	require.Equal(t, "prepare, before sleep, poll, work 20ms, finish, prepare, before sleep, poll, wake, finish, prepare, before sleep, poll, work 8ms, finish", s.take())
	e.StartBackground()
	e.Close()
	require.Equal(t, "wake", s.take(), "there is no background goroutine")
}

// A charger whose processor takes twice as long as others, and is woken once.
type charger struct{ *script }

func (charger) Copied(int) {}

func (charger) Takes(work time.Duration) time.Duration { return 2 * work }

func (c charger) Work(_ uint32, limit time.Duration) {
	c.note("work " + limit.String())
	if limit == 20*time.Millisecond {
		limit = 12 * time.Millisecond
	}
	c.now += limit
}
