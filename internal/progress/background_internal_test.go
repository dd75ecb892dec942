package progress

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/eventchannel"
)

// The background goroutine stands back for polls as frequent as those of a rank that waits most of the time, and knows of
// others.
func TestAttendance(t *testing.T) {
	for _, c := range []struct {
		name           string
		polls          uint64
		attended       uint64
		passed         time.Duration
		oversubscribed bool
		enough, some   bool
	}{
		{"a wait that goes on", 800, 0, time.Millisecond, false, true, true},
		{"waits of messages that take longer than polls", 120, 0, time.Millisecond, false, true, true},
		{"a short wait in a millisecond", 40, 0, time.Millisecond, false, false, true},
		{"short waits in eight", 320, 0, 8 * time.Millisecond, false, false, true},
		{"a poll by a call that asks whether all is done", 1, 0, time.Millisecond, false, false, true},
		{"nobody", 0, 0, time.Second, false, false, false},
		{"a wait just now, of which nobody knows how long it takes", 40, 0, 20 * time.Microsecond, false, false, false},
		{"a wait of an oversubscribed rank", 1, 0, 8 * time.Millisecond, true, true, true},
		{"a wait of an oversubscribed rank that has just begun", 0, 0, 20 * time.Microsecond, true, true, true},
		{"a wait that has slept for most of the time", 5, 95, time.Millisecond, false, true, true},
		{"a rank that sends much, and polls nothing", 0, 200, time.Millisecond, false, false, false},
		{"an oversubscribed rank that sends much, and polls nothing", 0, 200, time.Millisecond, true, false, false},
		{"a wait of an oversubscribed rank that is asleep", 0, 0, 8 * time.Millisecond, true, false, false},
	} {
		begin := time.Unix(1, 0)
		others := attendance{polls: 1000, attended: 50, since: begin}
		enough, some := others.update(1000+c.polls, 50+c.attended, begin.Add(c.passed), c.oversubscribed)
		require.Equal(t, c.enough, enough, c.name)
		require.Equal(t, c.some, some, c.name)
	}
}

// Short times add up until they tell something, and what has been judged counts no more.
func TestAttendanceAddsUp(t *testing.T) {
	at := time.Unix(1, 0)
	others := attendance{since: at}
	polls, enough := uint64(0), 0
	for range 100 {
		at = at.Add(20 * time.Microsecond)
		polls += 16
		if isEnough(others.update(polls, 0, at, false)) {
			enough++
		}
	}
	require.Equal(t, 2, enough, "in two milliseconds")
	require.False(t, isEnough(others.update(polls, 0, at.Add(time.Millisecond), false)), "after the last poll")
}

func isEnough(enough, _ bool) bool { return enough }

// networked returns an Engine on a clock that stands still, whose waits sleep on the network card.
func networked(now *time.Duration, change func(c *Config)) *Engine {
	channel := eventchannel.New()
	config := Config{Home: channel, Network: channel, Now: func() time.Duration { return *now }}
	change(&config)
	return New(config)
}

// The background goroutine is missed where a peer waits for what comes while this rank neither waits nor has just waited. With
// one processor it stands back even then, unless this rank has something to send or to do itself.
func TestCalm(t *testing.T) {
	now := time.Hour
	for _, c := range []struct {
		name   string
		change func(c *Config)
		set    func(e *Engine)
		// calm is with two processors, alone with one.
		calm, alone bool
	}{
		{"no peer needs this rank", nil, nil, true, true},
		{"a peer waits, after a computation", nil, (*Engine).Urgent, false, true},
		{"a peer waits, and so does this rank", nil, func(e *Engine) { e.background.waiting.Add(1); e.Urgent() }, true, true},
		{"a peer waits, just after a wait", nil, func(e *Engine) { e.background.waited.Store(int64(now - lateAfter/2)); e.Urgent() }, true, true},
		{"a peer waits for a completion, after a short computation", nil, func(e *Engine) { e.background.waited.Store(int64(now - lateAfter)); e.Completing() }, true, true},
		{"a peer waits for a completion, after a long computation", nil, (*Engine).Completing, false, true},
		{"something is to be retried", nil, func(e *Engine) { e.Retry(func() bool { return false }) }, false, false},
		{"output waits for room", func(c *Config) { c.Pending = func() bool { return true } }, nil, false, false},
		{"it is not to stand back", func(c *Config) { c.NoStandBack = true }, nil, false, false},
		{"there is no network", func(c *Config) { c.Network = nil }, nil, false, false},
	} {
		e := networked(&now, func(config *Config) {
			if c.change != nil {
				c.change(config)
			}
		})
		if c.set != nil {
			e.Exclude(func() { c.set(e) })
		}
		e.Poll()
		for processors, calm := range map[int]bool{2: c.calm, 1: c.alone} {
			before := runtime.GOMAXPROCS(processors)
			assert.Equal(t, calm, e.calm(), "%s, %d processors", c.name, processors)
			runtime.GOMAXPROCS(before)
		}
	}
}

// It is missed for some time only.
func TestCalmAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	now := time.Hour
	e := networked(&now, func(*Config) {})
	e.Exclude(e.Urgent)
	e.Poll()
	require.False(t, e.calm())
	now += calmAfter
	require.True(t, e.calm())
}

// A goroutine that sleeps with the only processor has it taken from those that others run for long only.
func TestOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	begun := time.Now()
	clock := func() time.Duration { return time.Since(begun) }
	e := New(Config{Home: eventchannel.New(), Now: clock})
	var stop atomic.Bool
	var others sync.WaitGroup
	run := func(long time.Duration) {
		others.Go(func() {
			for !stop.Load() {
				for begun := clock(); clock()-begun < long; {
				}
				runtime.Gosched()
			}
		})
	}
	run(4 * shortestStandBack)
	assert.Eventually(t, e.othersRun, await.Limit, time.Microsecond, "beside a computation")
	stop.Store(true)
	others.Wait()
	assert.Eventually(t, func() bool { return !e.othersRun() }, await.Limit, time.Microsecond, "alone")
	stop.Store(false)
	run(shortestStandBack / 100)
	assert.Eventually(t, func() bool { return !e.othersRun() }, await.Limit, time.Microsecond, "beside what is short")
	stop.Store(true)
	others.Wait()
}

// A wait that is asleep, and relies on the background goroutine, has polled before: that does not make it stand back.
func TestNapForgetsPolls(t *testing.T) {
	now := time.Hour
	e := networked(&now, func(*Config) {})
	others := e.attendance()
	timer := time.NewTimer(time.Hour) // computes: it is the one that nap sets
	defer timer.Stop()
	// They are enough however long this process is stopped.
	const polls = 1 << 40
	e.background.polls.Add(polls)
	require.False(t, e.nap(timer, shortestStandBack, &others))
	others.since = others.since.Add(-shortestStandBack)
	enough, some := e.others(&others)
	require.True(t, enough && some, "a nap that nobody has ended")
	e.background.polls.Add(polls)
	e.WakeBackground()
	require.True(t, e.nap(timer, time.Hour, &others))
	others.since = others.since.Add(-shortestStandBack)
	enough, some = e.others(&others)
	require.False(t, enough || some, "a nap that a wait has ended")
}

// A wait that sleeps on the network attends to it as well as one that polls: a sleep counts as the polls that would be in it.
// Where it sleeps elsewhere it does not.
func TestAsleepAttends(t *testing.T) {
	for _, apart := range []bool{false, true} {
		now := time.Hour
		e := networked(&now, func(c *Config) {
			c.Home = passing{c.Home.(*eventchannel.Channel), &now}
			if !apart {
				c.Network = c.Home
			}
			c.Limits.LongestSleep = 100 * pollsApart
		})
		wait := e.NewWaiter(nil)
		for range 6 {
			require.NoError(t, wait.Pause(t.Context()))
		}
		wait.Finish()
		want := uint64(3 * 100)
		if apart {
			want = 0
		}
		require.Equal(t, want, e.background.attended.Load())
		require.EqualValues(t, 6, e.background.polls.Load())
		n, slept := e.Sleeps()
		require.Equal(t, uint64(3), n)
		require.Equal(t, 300*pollsApart, slept)
	}
}

// The background goroutine stands back for polls, except those of a caller that does not go on polling. A poll that finds
// something, and a yield, count as the polls that would be in them.
func TestPollsAttend(t *testing.T) {
	now := time.Hour
	e := networked(&now, func(c *Config) {
		c.Limits = Limits{Yields: 2, Yield: func() { now += 50 * pollsApart }}
	})
	found := 0
	e.Register(SourceFunc(func(int) int { return found }))
	wait := e.NewWaiter(nil)
	defer wait.Finish()
	for _, c := range []struct {
		name            string
		found           int
		do              func()
		polls, attended uint64
	}{
		{"a yield", 0, func() { require.NoError(t, wait.Pause(t.Context())) }, 1, 50},
		{"a poll that finds nothing", 0, func() { e.Poll() }, 1, 0},
		{"a poll that finds something", 1, func() { e.Poll() }, 1, 8},
		{"a poll on the way", 0, func() { e.PollUncounted() }, 0, 0},
		{"a poll on the way that finds something", 1, func() { e.PollUncounted() }, 0, 0},
	} {
		before := e.attendance()
		found = c.found
		c.do()
		assert.Equal(t, c.polls, e.background.polls.Load()-before.polls, c.name)
		assert.Equal(t, c.attended, e.background.attended.Load()-before.attended, c.name)
	}
}

// passing is a channel whose sleeps last for their limits.
type passing struct {
	*eventchannel.Channel
	now *time.Duration
}

func (p passing) Sleep(_ uint32, limit time.Duration) { *p.now += limit }

// A wait of an oversubscribed rank is enough for the background goroutine, however rarely it polls, until it ends, or sleeps
// where the network does not wake it.
func TestOversubscribedWaitAttends(t *testing.T) {
	for _, c := range []struct{ oversubscribed, elsewhere, want bool }{
		{oversubscribed: true, want: true},
		{oversubscribed: true, elsewhere: true},
		{oversubscribed: false},
	} {
		now := time.Hour
		e := networked(&now, func(config *Config) {
			config.Limits.Oversubscribed = c.oversubscribed
			config.Home = passing{eventchannel.New(), &now}
			if !c.elsewhere {
				config.Network = config.Home
			}
		})
		wait := e.NewWaiter(nil)
		for !wait.slept {
			require.NoError(t, wait.Pause(t.Context()))
		}
		// No stop of this process is long enough for the polls to be judged.
		const later = time.Hour
		others := e.attendance()
		others.since = others.since.Add(later)
		require.Equal(t, c.want, isEnough(e.others(&others)), "%+v", c)
		require.Equal(t, c.elsewhere, len(e.background.endNap) == 1, "%+v", c)
		wait.Finish()
		others = e.attendance()
		others.since = others.since.Add(later)
		require.False(t, isEnough(e.others(&others)), "%+v: after the wait", c)
	}
}

// The background goroutine polls while nobody else does, and ends.
func TestBackground(t *testing.T) {
	var polls atomic.Int64
	now := time.Hour
	e := networked(&now, func(c *Config) { c.Limits.LongestSleep = time.Millisecond })
	e.Register(SourceFunc(func(int) int { polls.Add(1); return 0 }))
	e.StartBackground()
	e.StartBackground()
	await.True(t, "the background goroutine to poll", func() bool { return polls.Load() > 3 })
	e.Close()
	ended := polls.Load()
	e.StartBackground()
	e.Close()
	require.Equal(t, ended, polls.Load())
	require.Len(t, e.background.endNap, 1, "Close ends a nap")
}

// The background goroutine sleeps longer each time while nothing is found, but not long if something is to be retried. It
// prepares for each sleep, and polls once more for a sleeper that asked for it meanwhile.
func TestBackgroundSleeps(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for retrying, want := range map[bool][]time.Duration{
		false: {2 * shortestRetry, 4 * shortestRetry, 8 * shortestRetry, 16 * shortestRetry, 32 * shortestRetry, 2 * longestRetry, 2 * longestRetry},
		true:  {2 * shortestRetry, 4 * shortestRetry, 8 * shortestRetry, 16 * shortestRetry, longestRetry, longestRetry, longestRetry},
	} {
		now := time.Hour
		var e *Engine
		var slept []time.Duration
		e = networked(&now, func(c *Config) {
			c.Network = &sleeping{c.Network.(*eventchannel.Channel), func(limit time.Duration) {
				if slept = append(slept, limit); len(slept) == len(want) {
					e.background.stopped.Store(true)
				}
			}}
			c.Limits.LongestSleep = 2 * longestRetry
		})
		s := &asking{engine: e}
		e.Register(s)
		if retrying {
			e.Exclude(func() { e.Retry(func() bool { return false }) })
		}
		e.runBackground()
		require.Equal(t, want, slept)
		require.Equal(t, asking{e, len(want) + 1, len(want)}, *s)
	}
}

// sleeping is a channel whose sleeps call a function.
type sleeping struct {
	*eventchannel.Channel
	sleep func(limit time.Duration)
}

func (s *sleeping) Sleep(_ uint32, limit time.Duration) { s.sleep(limit) }

// asking is a Source in whose first poll a sleeper asks for another.
type asking struct {
	engine           *Engine
	polls, announced int
}

func (a *asking) Poll(int) int {
	if a.polls++; a.polls == 1 {
		a.engine.pollWanted.Store(true)
	}
	return 0
}

func (a *asking) BeforeSleep() { a.announced++ }

// A rank that has polled often, while no peer waited for it, is served when it computes for long.
func TestCalmServes(t *testing.T) {
	var due, found atomic.Int64
	begun := time.Now()
	clock := func() time.Duration { return time.Since(begun) }
	channel := eventchannel.New()
	e := New(Config{Home: channel, Network: channel, Now: clock, Limits: Limits{LongestSleep: time.Millisecond}})
	e.Register(SourceFunc(func(int) int {
		n := due.Swap(0)
		found.Add(n)
		return int(n)
	}))
	e.StartBackground()
	defer e.Close()
	for clock() < 5*calmAfter || !e.calm() { // computes
		for end := clock() + 300*time.Microsecond; clock() < end; { // computes
		}
		e.Poll()
	}
	due.Add(1)
	channel.Wake()
	for begun := time.Now(); found.Load() == 0; { // computes
		require.Less(t, time.Since(begun), await.Limit)
	}
}

// It sleeps on the network without end, and a wait that sleeps elsewhere wakes it from a nap only.
func TestBackgroundFinds(t *testing.T) {
	var due, found atomic.Int64
	home, network := eventchannel.New(), eventchannel.New()
	begun := time.Now()
	e := New(Config{Home: home, Network: network, Now: func() time.Duration { return time.Since(begun) }, Limits: Limits{LongestSleep: 2 * await.Limit}})
	e.Register(SourceFunc(func(int) int {
		n := due.Swap(0)
		found.Add(n)
		return int(n)
	}))
	e.StartBackground()
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	wait := e.NewWaiter(nil)
	defer wait.Finish()
	for i := range int64(100) {
		happened := make(chan struct{})
		go func() {
			defer close(happened)
			due.Add(1)
			network.Wake()
		}()
		for found.Load() <= i {
			require.NoError(t, wait.Pause(ctx))
		}
		<-happened
	}
}
