package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cli"
)

func TestReportOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "place")
	var stdout, stderr bytes.Buffer
	require.Zero(t, run(t.Context(), []string{cli.ReportCommand, "-o", dir, "-devices", "local", "-rounds", "2", "fop_lat", "put_bw:8,1024"}, &stdout, &stderr), stderr.String())
	assert.Contains(t, stderr.String(), "the report takes about")
	assert.Equal(t, []string{filepath.Join(dir, "report.html"), filepath.Join(dir, "results.txt"), filepath.Join(dir, "*.svg") + ", 2 plots"}, strings.Split(strings.TrimSpace(stdout.String()), "\n"))
	text, err := os.ReadFile(filepath.Join(dir, "results.txt"))
	require.NoError(t, err)
	assert.Len(t, regexp.MustCompile(`(?m)^BenchmarkFopLat/device=local/size=8-\d+\t20000\t.* ns/op\t.* p99-ns/op\t`).FindAllString(string(text), -1), 2)
	assert.Len(t, regexp.MustCompile(`(?m)^BenchmarkPutBw/device=local/size=(8|1024)-\d+\t1000\t.* MB/s$`).FindAllString(string(text), -1), 4)
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	benchtest.CheckXML(t, string(page))
}

func TestReportRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	for _, test := range []struct {
		args []string
		says string
	}{
		{nil, "report needs a place: -o DIR"},
		{[]string{"-o", "x", "put_latency"}, `there is no case "put_latency"; there are put_flush_lat`},
		{[]string{"-o", "x", "put_bw:0"}, "sizes are whole numbers from 1"},
		{[]string{"-o", "x", "-devices", "shm,udp"}, `-devices "shm,udp": unknown device "udp"; allowed are local, shm, tcp, ibv`},
		{[]string{"-o", "x", "-devices", "tcp,tcp"}, "tcp is given twice"},
		{[]string{"-o", "x", "-rounds", "0"}, "-rounds 0: at least 1"},
		{[]string{"-o", "x", "-set", "warp=on"}, `there is no switch "warp"`},
		{[]string{"-o", "x", "-devices", "shm", "-set", "batches=off"}, "-set batches=off is of what goes over TCP"},
		{[]string{"-o", "x", "-timeout", "0s"}, "-timeout 0s: more than 0"},
		{[]string{"-o", file, "fop_lat"}, "-o " + file + ":"},
		{[]string{"-o", filepath.Join(file, "below"), "fop_lat"}, "-o " + file},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), append([]string{cli.ReportCommand}, test.args...), &stdout, &stderr), "%v", test.args)
		assert.Contains(t, stderr.String(), test.says)
		assert.NotContains(t, stderr.String(), "the report takes")
	}
}
