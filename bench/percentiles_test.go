package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
)

func TestPercentilesOfEveryLatency(t *testing.T) {
	for _, deviceName := range []string{device.Local, "sim:pcie-2005"} {
		args := []string{"-percentiles", "-repeat", "2", "-device", deviceName, "put_bw:8"}
		if deviceName != device.Local {
			// Among many iterations the first, in which a window still learns, do not count.
			args = append([]string{"-shorten=2"}, args...)
		}
		for _, c := range cases.All() {
			if c.HasPercentiles() && c.Kind != cases.Raw {
				args = append(args, (cases.Cell{Case: c, Size: c.Sizes[0]}).String())
			}
		}
		require.Contains(t, args, "pscw_both_lat:8")
		require.Contains(t, args, "allreduce_lat:8")
		for name, r := range measured(t, args...) {
			p := r.Percentiles
			if name == "put_bw:8" {
				require.Nil(t, p)
				continue
			}
			require.NotNil(t, p, name)
			assert.Positive(t, p.P50, name)
			for _, pair := range [][2]float64{{p.P50, p.P90}, {p.P90, p.P99}, {p.P99, p.P999}, {p.P999, p.Max}} {
				assert.LessOrEqual(t, pair[0], pair[1], name)
			}
			assert.Positive(t, p.Count)
			if deviceName == device.Local {
				continue
			}
			assert.Equal(t, 1, p.Batch)
			assert.LessOrEqual(t, r.Value, 1.1*p.Max, name)
			// One iteration is as long as another there, but for what the histogram rounds up, and but for
			// collectives, of which this rank waits in one for what it has sent early in the next.
			if cases.ByName(r.Case).Kind != cases.Collective {
				assert.InEpsilon(t, r.Value, p.P50, 0.1, name)
			}
		}
	}
}

func TestPercentilesAreLinesBelowTheResult(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{benchtest.Trial(), "-device", "sim:pcie-2005", "-percentiles", "put_flush_lat:8"}, &stdout, &stderr), stderr.String())
	var names []string
	for line := range strings.Lines(stdout.String()) {
		fields := strings.Fields(line)
		require.Len(t, fields, 4, line)
		assert.Equal(t, []string{"8", "us"}, []string{fields[1], fields[3]})
		names = append(names, strings.TrimPrefix(fields[0], "put_flush_lat"))
	}
	assert.Equal(t, []string{"", ":p50", ":p90", ":p99", ":p99.9", ":max"}, names)
}
