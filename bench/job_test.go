package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// jobOf returns the one job of these cases.
func jobOf(t *testing.T, names ...string) launch {
	t.Helper()
	selected, err := parseCases(names)
	require.NoError(t, err)
	jobs, err := (&request{cases: selected}).jobs(0)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	return jobs[0]
}
