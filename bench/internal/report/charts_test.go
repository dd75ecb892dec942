package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/onesided/rma/bench/internal/chart/charttest"
	"github.com/onesided/rma/bench/internal/experiments/scale"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/stats"
)

// The charts whose axes have names or numbers of ranks can be read.
func TestChartsOfSchemesAndRanksCanBeRead(t *testing.T) {
	var drawn [][]plan.Result
	for i, name := range patterns {
		var pattern []plan.Result
		for k, s := range schemes.All() {
			ratios := stats.NewSeries(2)
			ratios.Set(0, 1+0.1*float64(i*k))
			ratios.Set(1, 1+0.3*float64(i+k))
			pattern = append(pattern, plan.Result{Case: strings.TrimSuffix(name, ":8"), Size: 8, Unit: stats.Microseconds, Scheme: s.Name, Ratio: &ratios})
		}
		drawn = append(drawn, pattern)
	}
	c := schemesChart(drawn)
	c.Title = "Schemes of the planner, on and off"
	m := charttest.Check(t, "schemes", c.SVG())
	assert.Len(t, m.X, len(schemes.All()))
	assert.Len(t, m.Names, len(drawn))
	assert.Len(t, m.Marks, len(drawn)*len(schemes.All()), "a mark for each median")

	var all []*scale.Growth
	for i, w := range scale.Workloads() {
		g := &scale.Growth{Workload: w.Name}
		for _, n := range numbersOfRanks {
			g.Points = append(g.Points, scale.Point{Ranks: n, Micros: float64((i + 1) * n)})
		}
		all = append(all, g)
	}
	m = charttest.Check(t, "scale", scaleChart(all).SVG())
	assert.Len(t, m.X, len(numbersOfRanks))
	assert.Len(t, m.Names, len(all))
}
