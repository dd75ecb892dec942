package plantest

import (
	"context"
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

// Scripted returns a function that measures jobs with given values: those of each cell, one a call. It fails at the cases of
// failures, with the results before them.
func Scripted(values map[string][]float64, failures map[string]error) func(context.Context, plan.Job) ([]plan.Result, error) {
	calls := make(map[string]int)
	return func(_ context.Context, j plan.Job) ([]plan.Result, error) {
		var results []plan.Result
		for _, one := range j.Cells {
			if err := failures[one.Case.Name]; err != nil {
				return results, err
			}
			key := one.String()
			results = append(results, plan.NewResult(one, j.Ranks, []float64{values[key][calls[key]]}))
			calls[key]++
		}
		return results, nil
	}
}
