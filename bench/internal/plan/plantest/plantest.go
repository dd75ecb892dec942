package plantest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/plan"
)

// Job returns the one job of these cases.
func Job(t *testing.T, names ...string) plan.Job {
	t.Helper()
	selected, err := plan.Parse(names)
	require.NoError(t, err)
	jobs, err := (&plan.Selection{Cases: selected}).Jobs(0)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	return jobs[0]
}
