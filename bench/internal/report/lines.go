package report

import (
	"context"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/stats"
)

// A line is one case as one library measures it on one device: a line of a plot.
type line struct {
	device, by string
	run        func(ctx context.Context, j plan.Job) ([]plan.Result, error)
	job        plan.Job
	cells      []*cell
	late       bool // was too slow, and is not run again
}

// A cell is one size of a line.
type cell struct {
	cases.Cell
	compare.Column
	distributions []*stats.Percentiles // of each round, nil without percentiles
}
