package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/onesided/rma/bench/internal/cli"
)

func TestKernelsRefuse(t *testing.T) {
	empty := t.TempDir()
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"-device", "local"}, `-device "local": kernels have shm and tcp`},
		{[]string{"-rounds", "0"}, "-rounds 0: at least 1"},
		{[]string{"-n", "0"}, "-n 0: allowed are 1 to 4096 ranks"},
		{[]string{"-timeout", "0s"}, "-timeout 0s: more than 0"},
		{[]string{"-peer-timeout", "0s"}, "-peer-timeout 0s: more than 0"},
		{[]string{"-size", "8"}, "flag provided but not defined: -size; -h lists the flags"},
		{[]string{"-prk", empty}, "-prk " + empty + ": there is none of stencil.openmpi, stencil.mpich, transpose.openmpi, transpose.mpich"},
		{[]string{"cg"}, `there is no kernel "cg"; there are gups, stencil, transpose`},
		{[]string{"gups", "gups"}, "kernel gups is named twice"},
		{[]string{"gups", "-rounds", "2"}, "-rounds: flags come before the kernels"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 2, run(t.Context(), append([]string{cli.KernelsCommand}, test.args...), &stdout, &stderr), "%v", test.args)
		assert.Contains(t, stderr.String(), test.says)
		assert.Empty(t, stdout.String())
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 0, run(t.Context(), []string{cli.KernelsCommand, "-h"}, &stdout, &stderr))
	for _, text := range []string{"usage: go run ./bench kernels", "-log 22", "-iterations 300", "transpose.mpich"} {
		assert.Contains(t, stderr.String(), text)
	}
	stderr.Reset()
	assert.Equal(t, 2, run(t.Context(), []string{cli.ReportCommand, "-o", empty, "-prk", empty}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "-prk is for -peers")
}
