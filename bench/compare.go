package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// A contestant is one column of a comparison.
type contestant struct {
	name string
	// run measures the cells of a job. With an error it gives the results that came
	// before it.
	run func(ctx context.Context, j job) ([]result, error)
}

// A column is what one contestant reached in a cell, over the rounds.
type column struct {
	Median *float64  `json:"median"`
	Min    *float64  `json:"min,omitempty"`
	Max    *float64  `json:"max,omitempty"`
	Values []float64 `json:"values,omitempty"`
	Reason string    `json:"reason,omitempty"` // of a round without a value
	Failed bool      `json:"failed,omitempty"` // not only left out
}

func (c *column) add(value float64) {
	c.Values = append(c.Values, value)
	least, most, middle := slices.Min(c.Values), slices.Max(c.Values), median(c.Values)
	c.Min, c.Max, c.Median = &least, &most, &middle
}

// A row is one cell of a comparison.
type row struct {
	Case    string             `json:"case"`
	Size    int                `json:"size"`
	Unit    string             `json:"unit"`
	Columns map[string]*column `json:"columns"`
	Ratio   *float64           `json:"ratio"`            // ours to the better peer's
	Better  string             `json:"better,omitempty"` // that peer
	Goals   []verdict          `json:"goals,omitempty"`

	cell cell
}

// A verdict is a goal of a cell and what was reached.
type verdict struct {
	Goal  string   `json:"goal"`
	Value *float64 `json:"value"` // what the goal is of: a ratio, or ours
	Met   *bool    `json:"met"`   // null if there is no value

	goal goal
}

const ours = "ours"

// compare gives every contestant a turn at every case in each round, each round
// beginning with another one, and judges the medians by the goals for device. It
// goes on when a contestant fails, and ends early only with ctx.
func compare(ctx context.Context, device string, jobs []job, all []contestant, rounds int, say func(string)) ([]*row, error) {
	cases := byCase(jobs)
	rows := make(map[cell]*row)
	var order []*row
	for _, j := range cases {
		for _, one := range j.cells {
			r := &row{Case: one.c.name, Size: one.size, Unit: one.c.unit, Columns: make(map[string]*column), cell: one}
			for _, c := range all {
				r.Columns[c.name] = new(column)
			}
			rows[one] = r
			order = append(order, r)
		}
	}
	late := make(map[string]bool)
	for round := range rounds {
		for i, j := range cases {
			for k := range all {
				c := all[(round+k)%len(all)]
				turn := fmt.Sprint(c.name, " ", i)
				if late[turn] || c.name != ours && j.cells[0].c.scene == raw {
					continue
				}
				say(fmt.Sprintf("round %d of %d, case %d of %d: %s (%d ranks) by %s", round+1, rounds, i+1, len(cases), j.cells[0].c.name, j.ranks, c.name))
				results, err := c.run(ctx, j)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				// Who was too slow once gets no further turn: it would cost the
				// whole time limit again.
				late[turn] = errors.Is(err, errTimeout)
				enter(rows, c.name, j, results, err)
			}
		}
	}
	for _, r := range order {
		r.judge(device, func(name string) *float64 {
			i := slices.IndexFunc(order, func(other *row) bool { return other.Case == name && other.Size == r.Size })
			if i < 0 {
				return nil
			}
			return order[i].Columns[ours].Median
		})
	}
	return order, nil
}

// byCase splits jobs so that each is of one case, as the peers run them.
func byCase(jobs []job) []job {
	var split []job
	for _, j := range jobs {
		for _, one := range j.cells {
			i := slices.IndexFunc(split, func(other job) bool { return other.ranks == j.ranks && other.cells[0].c.name == one.c.name })
			if i < 0 {
				i = len(split)
				split = append(split, job{ranks: j.ranks})
			}
			split[i].cells = append(split[i].cells, one)
		}
	}
	return split
}

// enter puts the results of one turn into the rows of its cells, and the reason
// into those that have none.
func enter(rows map[cell]*row, name string, j job, results []result, err error) {
	for _, one := range j.cells {
		column := rows[one].Columns[name]
		i := slices.IndexFunc(results, func(r result) bool { return r.Case == one.c.name && r.Size == one.size })
		switch {
		case i >= 0 && results[i].Skipped == "":
			column.add(results[i].Value)
		case i >= 0:
			column.Reason = results[i].Skipped
		case err != nil:
			column.Reason, column.Failed = err.Error(), true
		}
	}
}

// judge compares ours with the better of the peers, and both with the goals for
// device. standard gives ours of another case of the same size, nil if there is none.
func (r *row) judge(device string, standard func(name string) *float64) {
	mine := r.Columns[ours].Median
	var theirs *float64
	for name, c := range r.Columns {
		if name == ours || c.Median == nil {
			continue
		}
		if theirs == nil || (*c.Median > *theirs) == r.cell.c.moreIsBetter() && *c.Median != *theirs {
			theirs, r.Better = c.Median, name
		}
	}
	r.Ratio = quotient(mine, theirs)
	for _, g := range goalsOf(device, r.cell) {
		v := verdict{Goal: g.String(), goal: g}
		switch g.of {
		case thePeers:
			v.Value = r.Ratio
		case itself:
			v.Value = mine
		default:
			v.Value = quotient(mine, standard(g.of))
		}
		if v.Value != nil {
			met := g.met(*v.Value)
			v.Met = &met
		}
		r.Goals = append(r.Goals, v)
	}
}

// quotient is nil if there is none.
func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	q := *a / *b
	return &q
}
