package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/oracle"
)

// BenchmarkDraw draws programs.
func BenchmarkDraw(b *testing.B) {
	steps := 0
	for i := range b.N {
		steps += oracle.Draw(uint64(i%1000), oracle.Limits{}).Steps()
	}
	b.ReportMetric(float64(steps)/float64(b.N), "steps/program")
}

// BenchmarkRun runs programs on goroutines, which includes making the ranks and windows,
// and comparing.
func BenchmarkRun(b *testing.B) {
	for i := range b.N {
		p := oracle.Draw(uint64(i%1000), oracle.Limits{})
		require.NoError(b, runOn(b.Context(), goroutines, p, oracle.Options{}))
	}
}
