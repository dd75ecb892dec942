package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

func TestScale(t *testing.T) {
	onlyVirtual(t)
	var stdout, stderr bytes.Buffer
	want := []string{"fence", "stencil", "hashtable"}
	if testsize.N(1) == 1 {
		want = append(want[:1], someOf(want[1:]...)...)
	}
	args := append([]string{"scale", "-format", "json", "-ranks", "16,4,8,16,2,32,64"}, want...)
	require.Zero(t, run(t.Context(), args, &stdout, &stderr), stderr.String())
	var names []string
	for line := range strings.Lines(stdout.String()) {
		var g growth
		require.NoError(t, json.Unmarshal([]byte(line), &g))
		names = append(names, g.Workload)
		require.Equal(t, "sim:ndr-2024", g.Device)
		require.Len(t, g.Points, 6)
		for i, p := range g.Points {
			require.Equal(t, 2<<i, p.Ranks)
			require.Positive(t, p.Micros)
			require.Positive(t, p.Frames)
			require.Positive(t, p.Bytes)
			require.Positive(t, p.EventNanos)
			require.Greater(t, p.Start, p.Micros)
		}
		require.True(t, g.Time.Known)
		// All that grows with the number of ranks is a few hundred bytes for each.
		require.Less(t, g.Points[5].Bytes, g.Points[3].Bytes, g.Workload)
		require.Less(t, g.Memory.More, 1000.0, g.Workload)
		if g.Workload == "fence" {
			// A message to the next rank, with which the first round goes, and a round for
			// each doubling.
			require.False(t, g.Time.Linear)
			require.Less(t, g.Time.Off, 0.02)
			require.InDelta(t, g.Points[5].Frames, math.Log2(64), 0.1)
		}
	}
	require.Equal(t, want, names)
}

// The time is virtual: it is the same each time.
func TestScaleAgain(t *testing.T) {
	var once string
	for range 2 {
		var stdout, stderr bytes.Buffer
		require.Zero(t, run(t.Context(), []string{"scale", "-format", "json", "-ranks", "9", "stencil"}, &stdout, &stderr), stderr.String())
		var g growth
		require.NoError(t, json.Unmarshal(stdout.Bytes(), &g))
		g.Points[0].Bytes, g.Points[0].EventNanos = 0, 0
		text, err := json.Marshal(g)
		require.NoError(t, err)
		if once == "" {
			once = string(text)
		}
		require.Equal(t, once, string(text))
		require.False(t, g.Time.Known)
	}
}

func TestScaleAsText(t *testing.T) {
	g := &growth{Workload: "fence", Device: "sim:ndr-2024"}
	for n := 4.0; n <= 256; n *= 4 {
		g.Points = append(g.Points, scalePoint{Ranks: int(n), Micros: 1.5 + 2*math.Log2(n), Frames: 1 + math.Log2(n), Bytes: 100e3 + 300*n, EventNanos: 1234.4, Start: 250 * n})
	}
	g.judge()
	var b bytes.Buffer
	require.NoError(t, writeGrowth(&b, "go run ./bench scale fence", []*growth{g}))
	golden(t, "testdata/scale.golden", b.String())
}

func TestLaws(t *testing.T) {
	n := []float64{16, 32, 64, 128}
	for _, one := range []struct {
		name   string
		values []float64
		says   string
	}{
		{"logarithmic", []float64{5, 6, 7, 8}, "1 + 1 log2 n us, within 0 %"},
		{"linear", []float64{17, 33, 65, 129}, "1 + 1 n us, within 0 %"},
		{"falling", []float64{4, 3, 2, 1}, "8 - 1 log2 n us, within 0 %"},
		{"off", []float64{5, 9, 7, 10}, "0.6 + 1.3 log2 n us, within 21 %"},
	} {
		assert.Equal(t, one.says, fit(n, one.values).say("us"), one.name)
	}
	assert.Equal(t, "too few points: a law needs 3 numbers of ranks, each 16 or more", law{}.say("us"))
}

func TestTorus(t *testing.T) {
	for _, n := range []int{2, 3, 4, 6, 16, 24, 97, 4096} {
		for rank := range n {
			around := torus(rank, n)
			for i, other := range around {
				require.GreaterOrEqual(t, other, 0)
				require.Less(t, other, n)
				require.Equal(t, rank, torus(other, n)[i^1], "%d of %d: what is there is here", rank, n)
			}
		}
	}
}

func TestScaleUsage(t *testing.T) {
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"-ranks", "1"}, `-ranks "1": "1" is no number from 2 to 16384`},
		{[]string{"-ranks", "4,x"}, `-ranks "4,x": "x" is no number from 2 to 16384`},
		{[]string{"-device", "tcp"}, `-device "tcp": scale is in virtual time, allowed are sim: and a profile`},
		{[]string{"-device", "sim:none"}, "-device sim:none: "},
		{[]string{"-timeout", "0s"}, "-timeout 0s: more than 0"},
		{[]string{"-format", "xml"}, `-format "xml": allowed are text and json`},
		{[]string{"fence", "fence"}, "workload fence is named twice"},
		{[]string{"fence", "-seed", "1"}, "-seed: flags come before the workloads"},
		{[]string{"ping"}, `there is no workload "ping"; there are fence, stencil, hashtable`},
	} {
		var stderr bytes.Buffer
		require.Equal(t, 2, run(t.Context(), append([]string{"scale"}, test.args...), nil, &stderr))
		require.Contains(t, stderr.String(), test.says)
	}
	var stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"scale", "-h"}, nil, &stderr))
	require.Contains(t, stderr.String(), "hashtable")
	require.Equal(t, 1, run(t.Context(), []string{"scale", "-timeout", "1ms", "-ranks", "512", "fence"}, nil, &stderr))
	require.Contains(t, stderr.String(), "it takes longer than -timeout 1ms")
}

func TestScaleThatEndsEarlyHasWhatCameBefore(t *testing.T) {
	onlyVirtual(t)
	o, err := parseScale([]string{"-ranks", "4,8", "stencil"}, io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	extents, err := o.measure(ctx, func(line string) {
		if line == "stencil, 8 ranks" {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, extents, 1)
	require.Len(t, extents[0].Points, 1)
	require.Equal(t, 4, extents[0].Points[0].Ranks)
}
