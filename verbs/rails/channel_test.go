package rails_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/shm"
)

// restless is a device whose Sleep returns at once, as if there were always something to poll for. It counts the calls.
type restless struct {
	verbs.Device
	verbs.CompletionChannel
	sleeps atomic.Int32
}

func (r *restless) Channel() verbs.CompletionChannel { return r }

func (r *restless) Sleep(uint32, time.Duration) { r.sleeps.Add(1) }

// A rail that has something to poll for wakes a sleeper once, not repeatedly until it is polled.
func TestRailRingsOnce(t *testing.T) {
	fabric := shm.NewFabric()
	first, err := fabric.Open()
	require.NoError(t, err)
	second, err := fabric.Open()
	require.NoError(t, err)
	rail := &restless{Device: second, CompletionChannel: second.Channel()}
	device, err := rails.New(first, rail)
	require.NoError(t, err)
	defer func() { require.NoError(t, device.Close()) }()
	channel := device.Channel()
	for round := range int32(20) {
		channel.Sleep(channel.Prepare(), -1)
		await.True(t, "the sleep on the second rail", func() bool { return rail.sleeps.Load() > round })
		for range 1000 {
			runtime.Gosched()
		}
		require.Equal(t, round+1, rail.sleeps.Load(), "sleeps on the second rail while the sleeper is awake")
		channel.Finish()
	}
}
