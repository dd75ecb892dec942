package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/internal/testsize"
)

// everywhere names each case at a size that takes little.
func everywhere() []string {
	var cells []string
	for _, c := range cases.All() {
		switch {
		case c.Kind == cases.Alone && c.Name != "idle_cpu":
			cells = append(cells, c.Name+":3")
		case c.Limit > 0:
			cells = append(cells, c.Name+":64")
		default:
			cells = append(cells, (cases.Cell{Case: c, Size: c.Sizes[0]}).String())
		}
	}
	return cells
}

func TestEveryCaseRunsInVirtualTimeOrSaysWhyNot(t *testing.T) {
	results := measured(t, append([]string{"-device", "sim:pcie-2005"}, everywhere()...)...)
	for _, name := range everywhere() {
		r, ok := results[name]
		require.True(t, ok, name)
		assert.Equal(t, cases.ByName(r.Case).NotVirtual, r.Skipped, name)
		if r.Skipped == "" {
			if cases.ByName(r.Case).OfTarget {
				// What one short loop takes of the target may be less than a poll.
				assert.GreaterOrEqual(t, r.Value, 0.0, name)
			} else {
				assert.Positive(t, r.Value, name)
			}
			assert.Equal(t, device.SimulatedLoops, r.Repeat, name)
		}
	}
}

func TestTheSameSeedGivesTheSameTimes(t *testing.T) {
	args := []string{"-device", "sim:ndr-2024", "-seed", "7", "-n", "3", "-repeat", "2"}
	cells := []string{"put_flush_lat:8", "fence_put_lat:1024", "pscw_both_lat:65536", "pattern16_bw:4096", "mixed_rate", "fence_scale", "create_time"}
	some := testsize.Turns(0, len(cells), 4)
	for _, i := range some {
		args = append(args, cells[i])
	}
	first := measured(t, args...)
	assert.Len(t, first, len(some))
	assert.Equal(t, first, measured(t, args...))
}

func TestAWriteTakesWhatTheProfileSays(t *testing.T) {
	// 1 MiB at 964 MB/s, and some microseconds for the first byte.
	r := measured(t, "-device", "sim:pcie-2005", "-shorten=1", "put_flush_lat:1048576")["put_flush_lat:1048576"]
	assert.InDelta(t, 1048576/964.0, r.Value, 10)
	assert.Greater(t, r.Value, 1048576/964.0)
}

func TestWhatTakesNoTimeHasNoRate(t *testing.T) {
	results := measured(t, "-device", "sim:ideal", "put_flush_lat:8", "put_bw:8")
	assert.Zero(t, results["put_flush_lat:8"].Value)
	assert.Empty(t, results["put_flush_lat:8"].Skipped)
	assert.Equal(t, "it takes no time", results["put_bw:8"].Skipped)
}

func TestAComputationOverlapsTheTransfer(t *testing.T) {
	// The processor is busy for about half of the transfer, which goes on meanwhile.
	r := measured(t, "-device", "sim:pcie-2005", "-shorten=1", "put_flush_lat:1048576", "overlap_put_lat:1048576")
	assert.Less(t, r["overlap_put_lat:1048576"].Value, 1.1*r["put_flush_lat:1048576"].Value)
}

func TestSwitchesOfLinksReachSimulatedRanks(t *testing.T) {
	args := []string{"-device", "sim:pcie-2005", "-shorten=1", "pattern16_bw:65536"}
	inTurns := measured(t, args...)["pattern16_bw:65536"].Value
	inOrder := measured(t, append([]string{"-set", "getsfirst=off"}, args...)...)["pattern16_bw:65536"].Value
	assert.Greater(t, inTurns, 1.5*inOrder, "reads and writes take both directions")
}

// With atomics of the cards the target's processor does less than half as much.
func TestCardAtomicsSpareTheTarget(t *testing.T) {
	const cell = "count_target_cpu:1000"
	args := []string{"-device", "sim:ndr-2024", "-shorten=1", cell}
	byProcessor := measured(t, args...)[cell].Value
	byCard := measured(t, append([]string{"-set", "cardatomics=on"}, args...)...)[cell].Value
	assert.Positive(t, byProcessor)
	assert.Less(t, byCard, byProcessor/2)
}

func TestSchemesAreComparedInVirtualTime(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"schemes", benchtest.Trial(), "-device", "sim:pcie-2005", "-rounds", "1", "pscw_put_lat:64"}, &stdout, &stderr), stderr.String())
	assert.Contains(t, stdout.String(), "pcie-2005: InfiniHost III Ex MT25208")
	assert.Contains(t, stdout.String(), "at-once")
}

func TestATraceHasTheLoopsAndWhatTheCardsDo(t *testing.T) {
	var files [2][]byte
	for i := range files {
		name := filepath.Join(t.TempDir(), "trace.json")
		measured(t, "-device", "sim:pcie-2005", "-trace", name, "pattern16_bw:65536")
		var err error
		files[i], err = os.ReadFile(name)
		require.NoError(t, err)
	}
	assert.True(t, bytes.Equal(files[0], files[1]), "the same seed gives the same bytes")
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Pid      int
			Dur      float64
		}
	}
	require.NoError(t, json.Unmarshal(files[0], &trace))
	loops := 0
	for _, e := range trace.TraceEvents {
		if e.Name == "pattern16_bw:65536" && e.Ph == "X" {
			assert.Positive(t, e.Dur)
			loops++
		}
	}
	assert.Equal(t, 2*device.SimulatedLoops, loops, "those of both ranks")
	assert.Greater(t, len(trace.TraceEvents), 10*32*65536/(16<<10), "each burst of each operation")

	var stderr bytes.Buffer
	assert.Equal(t, 2, run(t.Context(), []string{"-device", "sim:ideal", "-trace", "t", "fop_lat", "fence_scale:4"}, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), "-trace is of one job")
}

func TestASimulatedJobThatTakesTooLongEnds(t *testing.T) {
	var stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-device", "sim:ideal", "-timeout", "1ms", "hashtable_lookup_rate"}, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), "not done in time: 1ms (-timeout)")
}
