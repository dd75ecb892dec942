package progress_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/eventchannel"
	"github.com/onesided/rma/internal/progress"
)

// Neither a poll nor a wait allocates, also if it sleeps or something is retried. The context of a wait that sleeps long does.
func TestAllocs(t *testing.T) {
	var number atomic.Uint32
	e := progress.New(progress.Config{Home: eventchannel.New(), Now: func() time.Duration { return time.Duration(number.Load()) }, Limits: progress.Limits{
		SpinRounds: 1, RelaxedIterations: 1, Yields: 1,
	}})
	e.Register(progress.SourceFunc(func(int) int { number.Add(1); return 0 }))
	e.Exclude(func() { e.Retry(func() bool { return false }) })
	ctx, guard := t.Context(), progress.Guard(allowing{})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		e.Poll()
		wait := e.NewWaiter(guard)
		for range 8 {
			if wait.Pause(ctx) != nil || wait.AboutToSleep() {
				e.Wake()
			}
		}
		wait.Finish()
	}))
	n, _ := e.Sleeps()
	require.NotZero(t, n)
}

type allowing struct{}

func (allowing) Ended() error                                      { return nil }
func (allowing) MaySleep(context.Context, *progress.Sleeper) error { return nil }
func (allowing) Leave(*progress.Sleeper, bool)                     {}

// BenchmarkPause is a wait whose third check finds what it waits for.
func BenchmarkPause(b *testing.B) {
	b.ReportAllocs()
	e := progress.New(progress.Config{Home: eventchannel.New(), Now: func() time.Duration { return 0 }, Limits: progress.Limits{SpinRounds: 10}})
	e.Register(progress.SourceFunc(func(int) int { return 0 }))
	guard := progress.Guard(allowing{})
	for b.Loop() {
		wait := e.NewWaiter(guard)
		for range 2 {
			_ = wait.Pause(b.Context())
		}
		wait.Finish()
	}
}
