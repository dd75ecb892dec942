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
		e.Poll()
		require.Equal(t, want, s.take())
	}
	require.False(t, e.Retrying())
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

// A rank that computes in virtual time makes progress meanwhile.
func TestCompute(t *testing.T) {
	s := new(script)
	found := []int{0, 1, 0}
	e := progress.New(progress.Config{Home: s, Now: s.Now, Charger: charger{s}})
	e.Register(source{s, func() (n int) { n, found = found[0], found[1:]; return n }})
	s.take()
	e.Compute(10 * time.Millisecond)
	require.Equal(t, 20*time.Millisecond, s.now)
	require.Equal(t, "prepare, quiet, poll, work 20ms, finish, prepare, quiet, poll, wake, finish, prepare, quiet, poll, work 8ms, finish", s.take())
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
