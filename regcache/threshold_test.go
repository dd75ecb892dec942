package regcache_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
)

func TestUses(t *testing.T) {
	c := regcache.Costs{
		Costs:    verbs.Costs{Register: 60 * time.Microsecond, RegisterPage: 200 * time.Nanosecond, CopyLatency: 50 * time.Nanosecond, CopyBandwidth: 2e9},
		LookUp:   100 * time.Nanosecond,
		PageSize: 4096,
	}
	require.Zero(t, c.Uses(64), "the card takes it with the request")
	// A copy of 1000 bytes takes 550 ns, 450 more than to look the buffer up.
	require.Equal(t, 134, c.Uses(1000))
	// 8192 bytes have a page more, and take 4146 ns.
	require.Equal(t, 15, c.Uses(8192))
	require.Greater(t, c.Uses(1000), c.Uses(2000))
	c.LookUp = time.Microsecond
	require.Zero(t, c.Uses(1000), "to look it up takes longer than to copy it")
	c.Register, c.RegisterPage = 0, 0
	require.Equal(t, 1, c.Uses(8192), "what is registered for nothing is from the first use on")
}

// The other of what two ways cost is to register once, and to deregister.
func TestExtra(t *testing.T) {
	c := regcache.Costs{
		Costs: verbs.Costs{
			Register: 60 * time.Microsecond, RegisterPage: 200 * time.Nanosecond, Deregister: 5 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond,
			CopyLatency: 50 * time.Nanosecond, CopyBandwidth: 2e9,
		},
		LookUp: 100 * time.Nanosecond, PageSize: 4096,
	}
	_, copying, registering := c.Extra(10_000)
	require.InDelta(t, 4950, copying, 1e-6)
	require.InDelta(t, 65_600, registering, 1e-6)
}

func TestThreshold(t *testing.T) {
	var names []string
	for s, of := range map[regcache.Speculation][3]int{
		regcache.Adaptive: {1, 1, 0},
		regcache.Always:   {1, 1, 1},
		regcache.Quarter:  {15, 1, 0},
		regcache.Half:     {30, 1, 0},
		regcache.Full:     {60, 1, 0},
		regcache.Never:    {0, 0, 0},
	} {
		require.Equal(t, of, [3]int{s.Threshold(60), s.Threshold(1), s.Threshold(0)}, s)
		names = append(names, s.String())
	}
	require.ElementsMatch(t, []string{"adaptive", "always", "25%", "50%", "100%", "never"}, names)
}
