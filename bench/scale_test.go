package main

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/experiments/scale"
	"github.com/onesided/rma/internal/testsize"
)

func TestScale(t *testing.T) {
	benchtest.OnlyVirtual(t)
	var stdout, stderr bytes.Buffer
	want := []string{"fence", "stencil", "hashtable"}
	if testsize.N(1) == 1 {
		want = append(want[:1], benchtest.SomeOf(want[1:]...)...)
	}
	args := append([]string{"scale", "-format", "json", "-ranks", "16,4,8,16,2,32,64"}, want...)
	require.Zero(t, run(t.Context(), args, &stdout, &stderr), stderr.String())
	var names []string
	for line := range strings.Lines(stdout.String()) {
		var g scale.Growth
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
		var g scale.Growth
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
