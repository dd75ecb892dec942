package compare

import (
	"cmp"
	"maps"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/stats"
)

// A Column is what one library reached in a cell.
type Column struct {
	stats.Series
	Reason string `json:"reason,omitempty"` // why a round has no value
	Failed bool   `json:"failed,omitempty"` // not only left out
}

// Enter enters the result of a run of a job for a cell in a round, or the reason why there is none.
func (c *Column) Enter(round int, j plan.Job, one cases.Cell, results []plan.Result, err error) {
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

// Pass skips a round, because an earlier run was too slow.
func (c *Column) Pass() {
	c.Reason = cmp.Or(c.Reason, "no further run: its job was not done in time")
}

// A Row is one cell of a comparison.
type Row struct {
	Case    string             `json:"case"`
	Size    int                `json:"size"`
	Unit    string             `json:"unit"`
	Columns map[string]*Column `json:"columns"`
	Ratio   stats.Series       `json:"ratio"`  // ours to the better MPI's, within each round
	Better  []string           `json:"better"` // that peer of each round, "" if there is none
	Goals   []*Verdict         `json:"goals,omitempty"`

	Cell cases.Cell `json:"-"`
}

// A Verdict is a goal of a cell and what was reached.
type Verdict struct {
	Goal  string       `json:"goal"`
	Value stats.Series `json:"value"`            // the value for the goal: a ratio within each round, or ours
	Of    *Column      `json:"beside,omitempty"` // the case to which the value is a ratio, measured beside this one
	Met   *bool        `json:"met"`              // by the median; null if there is none

	goal goal
}

// newRow returns the row of a cell before the first round. beside returns the column of another case to which a goal
// for device is a ratio.
func newRow(device string, one cases.Cell, all []Library, rounds int, beside func(standard cases.Cell) *Column) *Row {
	r := &Row{Case: one.Case.Name, Size: one.Size, Unit: one.Case.Unit, Columns: make(map[string]*Column), Cell: one}
	for _, c := range all {
		r.Columns[c.Name] = &Column{Series: stats.NewSeries(rounds)}
	}
	for _, g := range goalsOf(device, one) {
		v := &Verdict{Goal: g.String(), goal: g}
		if g.ofCase() {
			v.Of = beside(g.standard(one))
		}
		r.Goals = append(r.Goals, v)
	}
	return r
}

// judge compares ours with the better of the peers in each round, and the medians of the rounds with the goals. The
// machine's speed may change between rounds, so values of two rounds are never compared.
func (r *Row) judge() {
	mine := r.Columns[Ours].Series
	theirs := stats.NewSeries(len(mine.Values))
	r.Better = make([]string, len(mine.Values))
	for round := range mine.Values {
		for _, name := range slices.Sorted(maps.Keys(r.Columns)) {
			v, best := r.Columns[name].Values[round], theirs.Values[round]
			if name == Ours || v == nil {
				continue
			}
			if best == nil || *v != *best && (*v > *best) == r.Cell.Case.MoreIsBetter() {
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
