package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// The driver stands back for polls as frequent as those of a rank that waits most of the
// time, and hears of others.
func TestAttendance(t *testing.T) {
	for _, c := range []struct {
		name         string
		polls        uint64
		credit       uint64
		passed       time.Duration
		crowded      bool
		enough, some bool
	}{
		{"a wait that goes on", 800, 0, time.Millisecond, false, true, true},
		{"waits of messages that take longer than polls", 120, 0, time.Millisecond, false, true, true},
		{"a short wait in a millisecond", 40, 0, time.Millisecond, false, false, true},
		{"short waits in eight", 320, 0, 8 * time.Millisecond, false, false, true},
		{"a poll by who asks whether all is done", 1, 0, time.Millisecond, false, false, true},
		{"nobody", 0, 0, time.Second, false, false, false},
		{"a wait just now, of which nobody knows how long it takes", 40, 0, 20 * time.Microsecond, false, false, false},
		{"a wait in a crowd", 1, 0, 8 * time.Millisecond, true, true, true},
		{"a wait in a crowd that has just begun", 0, 0, 20 * time.Microsecond, true, true, true},
		{"a wait that has slept for most of the time", 5, 95, time.Millisecond, false, true, true},
		{"one who sends much, and looks at nothing", 0, 200, time.Millisecond, false, false, false},
		{"one who sends much in a crowd, and looks at nothing", 0, 200, time.Millisecond, true, false, false},
		{"one that is asleep in a crowd", 0, 0, 8 * time.Millisecond, true, false, false},
	} {
		begin := time.Unix(1, 0)
		others := attendance{polls: 1000, credit: 50, since: begin}
		enough, some := others.look(1000+c.polls, 50+c.credit, begin.Add(c.passed), c.crowded)
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
		if isEnough(others.look(polls, 0, at, false)) {
			enough++
		}
	}
	require.Equal(t, 2, enough, "in two milliseconds")
	require.False(t, isEnough(others.look(polls, 0, at.Add(time.Millisecond), false)), "after the last poll")
}

func isEnough(enough, _ bool) bool { return enough }

// The driver is missed where somebody waits for what comes while this rank neither waits nor has just waited. Of a program that has
// one processor only what this rank has to send itself tells.
func TestCalm(t *testing.T) {
	for _, c := range []struct {
		name  string
		set   func(w *World)
		urges bool
		calm  bool
		// completes: it is a completion that somebody waits for.
		completes bool
	}{
		{"a rank that nobody needs", func(*World) {}, false, true, false},
		{"somebody waits, behind a computation", func(*World) {}, true, false, false},
		{"somebody waits, and so does this rank", func(w *World) { w.waiting.Add(1) }, true, true, false},
		{"somebody waits, just behind a wait", func(w *World) { w.waited.Store(int64(w.Now() + time.Minute)) }, true, true, false},
		{"somebody waits for a completion, behind a short computation", func(w *World) { w.waited.Store(int64(w.Now() + time.Minute)) }, false, true, true},
		{"somebody waits for a completion, behind a long computation", func(*World) {}, false, false, true},
		{"something is to be retried", func(w *World) { w.retrying.Store(true) }, false, false, false},
		{"a rank that is to have it eager", func(w *World) { w.settings.tuning.NoStandBack = true }, false, false, false},
	} {
		runApart(t, 1, func(ctx context.Context, w *World) error {
			w.stopDriver()
			if err := await.Until(ctx, "its clock to go on", func() bool { return w.Now() >= 2*calmAfter }); err != nil {
				return err
			}
			w.waiting.Store(0)
			w.waited.Store(0)
			w.demand.last.Store(0)
			w.Exclude(func() {
				c.set(w)
				if c.urges {
					w.demand.urgent++
				}
				if c.completes {
					w.demand.completing++
				}
				w.poll()
			})
			c.set(w)
			if w.demand.last.Load() != 0 {
				// The driver stays missed, however long this goroutine has no processor.
				w.demand.last.Store(int64(w.Now() + time.Minute))
			}
			for cores, calm := range map[int]bool{2: c.calm, 1: c.calm || c.urges || c.completes} {
				before := runtime.GOMAXPROCS(cores)
				assert.Equal(t, calm, w.calm(), "%s, %d processors", c.name, cores)
				runtime.GOMAXPROCS(before)
			}
			w.waiting.Store(0)
			w.retrying.Store(false)
			return nil
		})
	}
}

// Who sleeps with the only processor has it taken from those that others run for long only.
func TestOthersRun(t *testing.T) {
	runApart(t, 1, func(_ context.Context, w *World) error {
		w.stopDriver()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		var stop atomic.Bool
		var others sync.WaitGroup
		run := func(long time.Duration) {
			others.Go(func() {
				for !stop.Load() {
					for begun := w.Now(); w.Now()-begun < long; {
					}
					runtime.Gosched()
				}
			})
		}
		run(4 * shortestStandBack)
		assert.Eventually(t, w.othersRun, await.Limit, time.Microsecond, "beside a computation")
		stop.Store(true)
		others.Wait()
		assert.Eventually(t, func() bool { return !w.othersRun() }, await.Limit, time.Microsecond, "alone")
		stop.Store(false)
		run(shortestStandBack / 100)
		assert.Eventually(t, func() bool { return !w.othersRun() }, await.Limit, time.Microsecond, "beside what is short")
		stop.Store(true)
		others.Wait()
		return nil
	})
}

// A question is what somebody waits for, and what asks for nothing, of which the completion tells; another message is not.
func TestUrgent(t *testing.T) {
	var service echo
	// A barrier, too, is what somebody waits for: rank 1 enters none before rank 0 has counted.
	begun, counted := make(chan struct{}), make(chan struct{})
	runApart(t, 2, func(ctx context.Context, w *World) error {
		defer w.Serve(7, &service)()
		w.stopDriver()
		l, err := w.Link(1 - w.rank)
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		// Both connect first, for which somebody waits, too.
		err = l.Ask(ctx, &Message{Kind: kindFlush}, nil, nil)
		if err := errors.Join(err, l.Flush(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
		for _, how := range []string{"told", "asked", "settled"} {
			count := func() (n uint64) {
				w.Exclude(func() {
					if n = w.demand.urgent; how == "settled" {
						n = w.demand.completing
					}
				})
				return n
			}
			told := service.told.Load()
			if w.rank == 0 {
				before := count()
				begun <- struct{}{}
				for service.told.Load() == told {
					w.Poll()
				}
				for how != "told" && count() == before && ctx.Err() == nil {
					w.Poll()
				}
				grown := count() > before
				counted <- struct{}{}
				if grown != (how != "told") {
					return fmt.Errorf("a message was %s, and somebody waits: %v", how, grown)
				}
			} else {
				<-begun
				m := Message{Kind: FirstKind + 1, Service: 7, X: 1}
				if err := l.Tell(&m, nil); err != nil {
					return err
				}
				l.Post()
				var err error
				switch how {
				case "asked":
					err = l.Flush(ctx)
				case "settled":
					err = l.Reach(ctx, l.Mark())
				}
				<-counted
				if err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// A rank that has called often, and been left alone, serves others when it computes for long.
func TestCalmServes(t *testing.T) {
	quiet, asked := make(chan struct{}), make(chan struct{})
	runApart(t, 2, func(ctx context.Context, w *World) error {
		l, err := w.Link(1 - w.rank)
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		if w.rank == 0 {
			<-quiet
			if err := errors.Join(l.Ask(ctx, &Message{Kind: kindFlush}, nil, nil), l.Flush(ctx)); err != nil {
				return err
			}
			close(asked)
			return w.Barrier(ctx)
		}
		w.KeepProgress()
		for begun := time.Now(); time.Since(begun) < 5*calmAfter || !w.calm(); { // computes
			for end := time.Now().Add(300 * time.Microsecond); time.Now().Before(end); { // computes
			}
			w.Poll()
			if time.Since(begun) > await.Limit {
				return errors.New("somebody has missed the driver of a rank that nobody asks anything")
			}
		}
		close(quiet)
		for end := time.Now().Add(await.Limit); time.Now().Before(end); {
			select {
			case <-asked:
				return w.Barrier(ctx)
			default:
			}
		}
		return errors.New("a question has no answer while this rank computes")
	})
}

// The driver does not stand back for the polls of a rank from before that rank slept. The polls are enough for any time
// that this test may take.
func TestDozeForgetsPolls(t *testing.T) {
	runApart(t, 1, func(_ context.Context, w *World) error {
		w.stopDriver()
		others := w.attendance()
		timer := time.NewTimer(time.Hour) // computes: it is the one that nap sets
		defer timer.Stop()
		w.polls.Add(1 << 40)
		require.False(t, w.nap(timer, shortestStandBack, &others))
		enough, some := w.others(&others)
		require.True(t, enough && some, "a nap that nobody has ended")
		w.polls.Add(1 << 40)
		w.wakeDriver()
		require.True(t, w.nap(timer, time.Hour, &others))
		others.since = others.since.Add(-shortestStandBack)
		enough, some = w.others(&others)
		require.False(t, enough || some, "a nap that somebody has ended")
		return nil
	})
}

// A rank that sleeps while it waits attends to the network as well as one that polls: the driver stands back, and each sleep
// counts for as many polls as would be in it.
func TestAsleepAttends(t *testing.T) {
	runApart(t, 1, func(ctx context.Context, w *World) error {
		counted := func() time.Duration { return time.Duration(w.polls.Load()+w.credit.Load()) * pollsApart }
		// Others may have the processor for a part of the time that it is awake.
		for enough := false; !enough; {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("it has not attended enough, by %d polls: %w", w.polls.Load(), err)
			}
			others, before := w.attendance(), counted()
			sleeps, slept := w.sleeps.Load(), w.slept.Load()
			short, cancel := context.WithTimeout(ctx, 40*time.Millisecond) // expires
			wait := w.NewWaiter()
			for wait.Pause(short) == nil {
			}
			wait.Finish()
			cancel()
			attended, rounded := counted()-before, time.Duration(w.sleeps.Load()-sleeps)*pollsApart
			asleep := time.Duration(w.slept.Load() - slept)
			if asleep == 0 {
				// Others had the processor until the context ended.
				continue
			}
			if attended+rounded < asleep {
				return fmt.Errorf("it has slept for %v, and attended for %v", asleep, attended)
			}
			enough = isEnough(w.others(&others))
		}
		return nil
	})
}

// A wait of a crowded rank is enough for the driver, however rarely it gets to poll, until it
// ends or sleeps where the network does not wake it.
func TestCrowdedWaitAttends(t *testing.T) {
	for _, c := range []struct{ crowded, elsewhere, want bool }{
		{crowded: true, want: true},
		{crowded: true, elsewhere: true},
		{crowded: false},
	} {
		runApart(t, 1, func(ctx context.Context, w *World) error {
			w.stopDriver()
			w.crowded = c.crowded
			if c.elsewhere {
				defer func(home *card) { w.home = home }(w.home)
				w.home = &card{device: w.home.device}
			}
			wait := w.NewWaiter()
			wait.rounds, wait.yields = 0, 0
			for !wait.slept {
				if err := wait.Pause(ctx); err != nil {
					return err
				}
			}
			now := w.attendance()
			require.Equal(t, c.want, isEnough(w.others(&now)), "%+v", c)
			wait.Finish()
			now = w.attendance()
			require.False(t, isEnough(w.others(&now)), "%+v: behind the wait", c)
			return nil
		})
	}
}

// A rank that computes, and waits for a moment now and then, serves others meanwhile: mostly before another goroutine has slept
// naps times for as long as the driver stands back at most.
func TestComputingServes(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		t.Skip("skipped: with one processor no other goroutine runs while a rank computes for so short a time")
	}
	const (
		turns = 2
		tries = 20
		trips = 3
		naps  = 8
	)
	var service echo
	over := make(chan struct{})
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		defer w.Serve(7, &service)()
		l, err := w.Link(1 - w.rank)
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		for w.rank == 0 {
			select {
			case <-over:
				return w.Barrier(ctx)
			default:
			}
			if err := l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil); err != nil {
				return err
			}
			if err := l.Flush(ctx); err != nil {
				return err
			}
		}
		w.KeepProgress()
		served := 0
		try := func() error {
			if err := l.Ask(ctx, &Message{Kind: kindFlush}, nil, nil); err != nil {
				return err
			}
			if err := l.Flush(ctx); err != nil {
				return err
			}
			// What came with the answer may be served just then.
			want := service.told.Load() + trips
			var slept atomic.Int64
			// What keeps the driver from its processor keeps this goroutine from it as well, whatever the load.
			rested := make(chan struct{})
			go func() {
				defer close(rested)
				for slept.Load() < naps && service.told.Load() < want {
					time.Sleep(longestStandBack) // computes
					slept.Add(1)
				}
			}()
			for slept.Load() < naps && service.told.Load() < want { // computes
			}
			if service.told.Load() >= want {
				served++
			}
			<-rested
			return nil
		}
		// Under load the driver may be the one that waits for its processor, time and again.
		for turn := 0; turn < turns && served < tries/2; turn++ {
			served = 0
			for range tries {
				if err := try(); err != nil {
					return err
				}
			}
			t.Logf("others were served in %d of %d times of computing", served, tries)
		}
		close(over)
		assert.GreaterOrEqual(t, served, tries/2, "of %d times of computing, in so many others were served", tries)
		return w.Barrier(ctx)
	}, apart()...)
	require.NoError(t, err)
}

// A rank that writes much makes progress meanwhile, without a driver and without a call
// that waits.
func TestWriterPolls(t *testing.T) {
	var service echo
	places, idle, told := make([]Places, 1), make(chan struct{}), make(chan error, 1)
	runApart(t, 2, func(ctx context.Context, w *World) error {
		defer w.Serve(7, &service)()
		if w.rank == 1 {
			region, err := w.Register(make([]byte, pollBytes), verbs.LocalWrite|verbs.RemoteWrite)
			if err != nil {
				return err
			}
			places[0] = region.Places()
		}
		if err := Broadcast(ctx, w, 1, places); err != nil {
			return err
		}
		l, err := w.Link(1 - w.rank)
		if err != nil {
			return err
		}
		if err := errors.Join(l.Flush(ctx), w.Barrier(ctx)); err != nil {
			return err
		}
		if w.rank == 1 {
			<-idle
			err := l.Tell(&Message{Kind: FirstKind + 1, Service: 7, X: 1}, nil)
			l.Post()
			told <- err
			return w.Barrier(ctx)
		}
		w.stopDriver()
		close(idle)
		if err := <-told; err != nil {
			return err
		}
		piece := make([]byte, pollBytes/4)
		for i := range 4 {
			if n := service.told.Load(); n != 0 {
				return fmt.Errorf("%d served after %d pieces, which are not %d bytes", n, i, pollBytes)
			}
			if err := l.Write(ctx, piece, w.Place(1, &places[0]), 0); err != nil {
				return err
			}
		}
		if n := service.told.Load(); n != 1 {
			return fmt.Errorf("%d messages served after %d bytes, not the one that had come", n, pollBytes)
		}
		return errors.Join(l.Flush(ctx), w.Barrier(ctx))
	})
}
