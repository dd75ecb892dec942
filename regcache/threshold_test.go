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

func TestThreshold(t *testing.T) {
	require.Equal(t, 15, regcache.Quarter.Threshold(60))
	require.Equal(t, 60, regcache.Speculation(1).Threshold(60))
	require.Equal(t, 1, regcache.Quarter.Threshold(1))
	require.Zero(t, regcache.Quarter.Threshold(0))
}
