package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/oracle"
)

// BenchmarkDraw measures Draw.
func BenchmarkDraw(b *testing.B) {
	steps := 0
	for i := range b.N {
		steps += oracle.Draw(uint64(i%1000), oracle.Limits{}).Steps()
	}
	b.ReportMetric(float64(steps)/float64(b.N), "steps/program")
}

// BenchmarkRun measures programs on goroutines, with making the ranks and windows, and with the comparison.
func BenchmarkRun(b *testing.B) {
	for i := range b.N {
		p := oracle.Draw(uint64(i%1000), oracle.Limits{})
		require.NoError(b, runOn(b.Context(), goroutines, p, oracle.Options{}))
	}
}
