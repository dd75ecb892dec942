package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
)

func TestPaperDrawsTheFiguresThatAreNamed(t *testing.T) {
	benchtest.OnlyVirtual(t)
	dir := filepath.Join(t.TempDir(), "figures")
	var stdout, stderr bytes.Buffer
	status := run(t.Context(), []string{"paper", "-part", "A", "-svg", dir, "A9a"}, &stdout, &stderr)
	off := strings.Count(stdout.String(), "  off\n")
	assert.Equal(t, 3, off+strings.Count(stdout.String(), "  within"), stdout.String())
	assert.Equal(t, min(off, 1), status, stderr.String())
	drawn, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, drawn, 1)
	assert.Equal(t, "A9a.svg", drawn[0].Name())
}

func TestWrongUsageOfPaperNamesWhatIsAllowed(t *testing.T) {
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"A99"}, `there is no figure "A99"; there are A7a, A7b, A8a`},
		{[]string{"A7a", "A7a"}, "figure A7a is named twice"},
		{[]string{"A7a", "-svg", "x"}, "-svg: flags come before the figures"},
		{[]string{"-part", "Z"}, `-part "Z": allowed are A`},
		{[]string{"-format", "xml"}, `-format "xml": allowed are text and json`},
		{[]string{"-curves", "-format", "json"}, "-curves is for -format text"},
		{[]string{"-timeout", "0s"}, "-timeout 0s: more than 0"},
		{[]string{"-peers"}, "flag provided but not defined: -peers; -h lists the flags"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), append([]string{"paper"}, test.args...), &stdout, &stderr))
		assert.Contains(t, stderr.String(), "bench: ")
		assert.Contains(t, stderr.String(), test.says)
		assert.Empty(t, stdout.String())
	}
	var usage bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"paper", "-h"}, io.Discard, &usage))
	assert.Contains(t, usage.String(), "usage: go run ./bench paper")
	assert.Contains(t, usage.String(), "A10b")
}
