//go:build ibverbs && cgo && linux

package ibv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// What a card costs is measured when it is opened, and nothing is left of that.
func TestCalibrate(t *testing.T) {
	var d *device
	// A measurement of a busy machine may be given up.
	await.True(t, "a card that has been measured", func() bool {
		d = OpenCard(t).(*device)
		if costs, usual := d.Costs(), d.usualCosts(); costs.Gap != usual.Gap && costs.Serve != usual.Serve {
			return true
		}
		require.NoError(t, d.Close())
		return false
	})
	defer func() { require.NoError(t, d.Close()) }()
	costs := d.Costs()
	t.Logf("%+v, spin %v", costs, d.attributes.Spin)
	for name, c := range map[string]time.Duration{
		"Post": costs.Post, "Gap": costs.Gap, "Serve": costs.Serve, "Latency": costs.Latency, "ReadLatency": costs.ReadLatency,
		"Register": costs.Register, "Deregister": costs.Deregister,
	} {
		require.Positive(t, c, name)
		require.Less(t, c, await.Limit, name)
	}
	require.Positive(t, costs.Bandwidth)
	require.GreaterOrEqual(t, costs.DuplexBandwidth, costs.Bandwidth)
	require.LessOrEqual(t, costs.DuplexBandwidth, 2*costs.Bandwidth)
	require.GreaterOrEqual(t, d.attributes.Spin, shortestSpin)
	require.LessOrEqual(t, d.attributes.Spin, longestSpin)
	require.Empty(t, d.pairs.all())
	require.Empty(t, *d.queues.Load())
	require.Empty(t, d.regions.byKey)
}

// A card that cannot be measured has the usual costs.
func TestCalibrateFails(t *testing.T) {
	d := OpenCard(t).(*device)
	defer func() { require.NoError(t, d.Close()) }()
	trial := trial{device: d}
	defer trial.close()
	require.NoError(t, trial.open())
	trial.pairs[1].Sever()
	costs := d.usualCosts()
	trial.measure(&costs)
	require.Error(t, trial.err)

	d.limits.depth = 4
	d.calibrate()
	require.Equal(t, d.usualCosts(), d.costs)
	require.Equal(t, shortestSpin, d.attributes.Spin)
}
