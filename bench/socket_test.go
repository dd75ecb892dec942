package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/onesided/rma/bench/internal/cases"
)

func TestSocketsAreMeasuredBetweenTwoProcesses(t *testing.T) {
	if cases.SocketsUnable != "" {
		t.Skip("skipped: " + cases.SocketsUnable)
	}
	// They use no device, so that each will do.
	results := measured(t, "-device", "tcp", "-repeat", "2", "socket_lat:65536,65537", "socket_bw:65536")
	assert.Len(t, results, 3)
	for name, r := range results {
		assert.Positive(t, r.Value, name)
		assert.Equal(t, 2, r.Ranks, name)
		assert.Equal(t, 2, r.Repeat, name)
		assert.LessOrEqual(t, r.Min, r.Max, name)
	}
}

func TestAnEndOfASocketIsStartedByBenchOnly(t *testing.T) {
	for _, value := range []string{"2", "-1", "x"} {
		t.Setenv("RMA_BENCH_SOCKET_RANK", value)
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 1, run(t.Context(), []string{"socket_lat"}, &stdout, &stderr))
		assert.Contains(t, stderr.String(), `RMA_BENCH_SOCKET_RANK="`+value+`": allowed are 0 and 1`)
	}
}

func TestSocketsThatTakeTooLongEnd(t *testing.T) {
	if cases.SocketsUnable != "" {
		t.Skip("skipped: " + cases.SocketsUnable)
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-timeout", "1ms", "socket_lat:8"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "not done in time: 1ms (-timeout)")
}
