package eventchannel_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/eventchannel"
	"github.com/onesided/rma/verbs"
)

var _ verbs.CompletionChannel = eventchannel.New()

// Sleepers with different limits share a timer. Each sleeper wakes at its limit.
func TestLimits(t *testing.T) {
	c := eventchannel.New()
	var sleepers sync.WaitGroup
	begun := time.Now()
	for _, limit := range []time.Duration{40 * time.Millisecond, 10 * time.Millisecond, 70 * time.Millisecond} {
		sleepers.Go(func() {
			for left := limit; left > 0; left = limit - time.Since(begun) {
				ticket := c.Prepare()
				c.Sleep(ticket, left)
				c.Finish()
			}
		})
	}
	sleepers.Wait()
	require.GreaterOrEqual(t, time.Since(begun), 70*time.Millisecond)
}

// A wake between Prepare and Sleep is not lost. Sleep with a limit of 0 returns at once.
func TestWakeIfSleeping(t *testing.T) {
	c := eventchannel.New()
	ticket := c.Prepare()
	c.WakeIfSleeping()
	c.Sleep(ticket, -1)
	c.Sleep(c.Prepare(), 0)
	c.Finish()
	c.Finish()

	// One goroutine wakes the sleeper for each of many things, and another sleeps until all are there. A lost wake
	// would leave it asleep.
	const things = 10000
	var there atomic.Int32
	go func() {
		for range things {
			there.Add(1)
			c.WakeIfSleeping()
		}
	}()
	awake := make(chan struct{})
	go func() {
		defer close(awake)
		for there.Load() < things {
			ticket := c.Prepare()
			if there.Load() < things {
				c.Sleep(ticket, -1)
			}
			c.Finish()
		}
	}()
	await.Closed(t, "the last wake", awake)
}

func TestSleepAllocatesNothing(t *testing.T) {
	c := eventchannel.New()
	c.Sleep(c.Prepare(), time.Microsecond)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		c.Sleep(c.Prepare(), time.Microsecond)
		c.Finish()
	}))
}
