package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tracedSpan is one of a trace, in microseconds.
type tracedSpan struct{ from, until float64 }

// spansOf are the spans of a rank in a file whose lane and name begin so, in order.
func spansOf(t *testing.T, file string, rank int, lane, name string) (spans []tracedSpan) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Pid, Tid int
			Ts, Dur  float64
			Args     struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &trace))
	lanes := make(map[int]string)
	for _, e := range trace.TraceEvents {
		switch {
		case e.Pid != rank:
		case e.Name == "thread_name":
			lanes[e.Tid] = e.Args.Name
		case e.Ph == "X" && strings.HasPrefix(lanes[e.Tid], lane) && strings.HasPrefix(e.Name, name):
			spans = append(spans, tracedSpan{e.Ts, e.Ts + e.Dur})
		}
	}
	return spans
}

// total is how long spans last together, shared how long those of two lanes do at one time,
// of which each has one at a time.
func total(spans []tracedSpan) (sum float64) {
	for _, s := range spans {
		sum += s.until - s.from
	}
	return sum
}

func shared(a, b []tracedSpan) (sum float64) {
	for len(a) > 0 && len(b) > 0 {
		sum += max(0, min(a[0].until, b[0].until)-max(a[0].from, b[0].from))
		if a[0].until < b[0].until {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return sum
}

// Of 16 puts and 16 gets, which alternate, the data pass both directions of the link at one time;
// in the order of the program, the puts first, they do one after the other.
func TestATraceShowsWhetherDirectionsOverlap(t *testing.T) {
	part := func(switches ...string) float64 {
		file := filepath.Join(t.TempDir(), "t.json")
		measured(t, append(append([]string{"-device", "sim:ndr-2024", "-trace", file}, switches...), "pattern16_bw:65536")...)
		written, read := spansOf(t, file, 0, "link out", "write to 1"), spansOf(t, file, 0, "link in", "read response from 1")
		require.NotEmpty(t, written)
		require.InDelta(t, total(written), total(read), 0.01*total(read))
		require.InDelta(t, total(read), shared(read, spansOf(t, file, 0, "program", "Complete")), 0.01*total(read))
		return shared(written, read) / total(read)
	}
	assert.Greater(t, part(), 0.8)
	assert.Less(t, part("-set", "getsfirst=off"), 0.3)
}

func TestATraceOfRealRanks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.json")
	measured(t, "-device", "tcp", "-repeat", "2", "-trace", file, "pattern16_bw:65536")
	for rank := range 2 {
		assert.Len(t, spansOf(t, file, rank, "program", "pattern16_bw:65536"), 2)
	}
	assert.NotEmpty(t, spansOf(t, file, 0, "out", "write to 1"))
	assert.NotEmpty(t, spansOf(t, file, 0, "in", "read from 1"))
	assert.NotEmpty(t, spansOf(t, file, 1, "processor", "serve"))
	assert.NotEmpty(t, spansOf(t, file, 0, "program", "Complete"))

	var stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-device", "tcp", "-trace", filepath.Join(file, "none"), "fop_lat"}, io.Discard, &stderr))
	assert.Contains(t, stderr.String(), "RMA_TRACE (or WithTrace): timeline: open")
}
