package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/plan"
)

func TestSchemesOverTCP(t *testing.T) {
	benchtest.NeedProcesses(t)
	var stdout, stderr bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"schemes", benchtest.Trial(), "-rounds", "2", "-set", "singleelement=on", "get_bw:8", "acc_flush_lat:16"}, &stdout, &stderr), stderr.String())
	assert.Contains(t, stderr.String(), "bench: acc_flush_lat 16 is left out: singleelement=on, and it accumulates 2 elements\n")
	lines := strings.Split(stdout.String(), "\n")
	for i, s := range schemes.All() {
		fields := strings.Fields(lines[i])
		require.Len(t, fields, 6, lines[i])
		assert.Equal(t, []string{"get_bw", "8", "MB/s", s.Name}, []string{fields[0], fields[1], fields[3], fields[4]})
	}
	assert.Contains(t, stdout.String(), "adaptive takes at worst ")

	stdout.Reset()
	require.Equal(t, 0, run(t.Context(), []string{"schemes", benchtest.Trial(), "-device", "sim:pcie-2005", "-rounds", "1", "-format", "json", "put_flush_lat:8"}, &stdout, &stderr), stderr.String())
	decoder := json.NewDecoder(&stdout)
	for _, s := range schemes.All() {
		var r plan.Result
		require.NoError(t, decoder.Decode(&r))
		assert.Equal(t, s.Name, r.Scheme)
	}
	assert.False(t, decoder.More(), "no table")
}
