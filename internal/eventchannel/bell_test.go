package eventchannel_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/eventchannel"
	"github.com/onesided/rma/verbs"
)

var _ verbs.CompletionChannel = eventchannel.New()

// Sleepers with different limits share a timer. Each sleeper wakes at its limit.
func TestLimits(t *testing.T) {
	b := eventchannel.New()
	var sleepers sync.WaitGroup
	begun := time.Now()
	for _, limit := range []time.Duration{40 * time.Millisecond, 10 * time.Millisecond, 70 * time.Millisecond} {
		sleepers.Go(func() {
			for left := limit; left > 0; left = limit - time.Since(begun) {
				ticket := b.Prepare()
				b.Sleep(ticket, left)
				b.Finish()
			}
		})
	}
	sleepers.Wait()
	require.GreaterOrEqual(t, time.Since(begun), 70*time.Millisecond)
}

// A ring between Prepare and Sleep is not lost. Sleep with a limit of 0 returns at once.
func TestRingsAreHeard(t *testing.T) {
	b := eventchannel.New()
	ticket := b.Prepare()
	b.RingIfHeard()
	b.Sleep(ticket, -1)
	b.Sleep(b.Prepare(), 0)
	b.Finish()
	b.Finish()

	// One goroutine rings for each of many things, and another sleeps until all are there.
	const things = 10000
	var there atomic.Int32
	go func() {
		for range things {
			there.Add(1)
			b.RingIfHeard()
		}
	}()
	for there.Load() < things {
		ticket := b.Prepare()
		if there.Load() < things {
			b.Sleep(ticket, 10*time.Second)
		}
		b.Finish()
	}
}

func TestSleepAllocatesNothing(t *testing.T) {
	b := eventchannel.New()
	b.Sleep(b.Prepare(), time.Microsecond)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.Sleep(b.Prepare(), time.Microsecond)
		b.Finish()
	}))
}
