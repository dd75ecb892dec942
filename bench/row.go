package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/stats"
)

// A column is what one contestant reached in a cell.
type column struct {
	stats.Series
	Reason string `json:"reason,omitempty"` // why a round has no value
	Failed bool   `json:"failed,omitempty"` // not only left out
}

// enter enters the result of a run of a job for a cell in a round, or the reason why there is none.
func (c *column) enter(round int, j plan.Job, one cases.Cell, results []plan.Result, err error) {
	i := slices.IndexFunc(results, func(r plan.Result) bool { return r.Of(one) })
	switch {
	case i >= 0 && results[i].Skipped == "":
		c.Set(round, results[i].Value)
	case i >= 0:
		c.Reason = results[i].Skipped
	case err != nil:
		c.Reason, c.Failed = cli.Cause(j.Missing(one, results, err)), true
	}
}

// pass skips a round, because an earlier run was too slow.
func (c *column) pass() {
	c.Reason = cmp.Or(c.Reason, "no further turn: its job was not done in time")
}

// A row is one cell of a comparison.
type row struct {
	Case    string             `json:"case"`
	Size    int                `json:"size"`
	Unit    string             `json:"unit"`
	Columns map[string]*column `json:"columns"`
	Ratio   stats.Series       `json:"ratio"`  // ours to the better peer's, within each round
	Better  []string           `json:"better"` // that peer of each round, "" if there is none
	Goals   []*verdict         `json:"goals,omitempty"`

	cell cases.Cell
}

// A verdict is a goal of a cell and what was reached.
type verdict struct {
	Goal  string       `json:"goal"`
	Value stats.Series `json:"value"`            // the value for the goal: a ratio within each round, or ours
	Of    *column      `json:"beside,omitempty"` // the case to which the value is a ratio, measured beside this one
	Met   *bool        `json:"met"`              // by the median; null if there is none

	goal goal
}

// newRow returns the row of a cell before the first round. beside returns the column of another case to which a goal
// for device is a ratio.
func newRow(device string, one cases.Cell, all []contestant, rounds int, beside func(standard cases.Cell) *column) *row {
	r := &row{Case: one.Case.Name, Size: one.Size, Unit: one.Case.Unit, Columns: make(map[string]*column), cell: one}
	for _, c := range all {
		r.Columns[c.name] = &column{Series: stats.NewSeries(rounds)}
	}
	for _, g := range goalsOf(device, one) {
		v := &verdict{Goal: g.String(), goal: g}
		if g.ofCase() {
			v.Of = beside(g.standard(one))
		}
		r.Goals = append(r.Goals, v)
	}
	return r
}

// judge compares ours with the better of the peers in each round, and the medians of the rounds with the goals. The
// machine's speed may change between rounds, so values of two rounds are never compared.
func (r *row) judge() {
	mine := r.Columns[ours].Series
	theirs := stats.NewSeries(len(mine.Values))
	r.Better = make([]string, len(mine.Values))
	for round := range mine.Values {
		for _, name := range slices.Sorted(maps.Keys(r.Columns)) {
			v, best := r.Columns[name].Values[round], theirs.Values[round]
			if name == ours || v == nil {
				continue
			}
			if best == nil || *v != *best && (*v > *best) == r.cell.Case.MoreIsBetter() {
				theirs.Set(round, *v)
				r.Better[round] = name
			}
		}
	}
	r.Ratio = stats.Ratios(mine, theirs)
	for _, v := range r.Goals {
		switch {
		case v.goal.ofCase():
			v.Value = stats.Ratios(mine, v.Of.Series)
		case v.goal.of == itself:
			v.Value = mine
		default:
			v.Value = r.Ratio
		}
		if v.Value.Median != nil {
			met := v.goal.met(*v.Value.Median)
			v.Met = &met
		}
	}
}
