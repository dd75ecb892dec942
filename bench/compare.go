package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
)

// A contestant is one column of a comparison.
type contestant struct {
	name string
	// run measures the cells of a job. With an error it returns the results before it.
	run func(ctx context.Context, j plan.Job) ([]plan.Result, error)
}

const ours = "ours"

// A turn is the run of one contestant for one case in every round.
type turn struct {
	contestant
	job     plan.Job
	columns []*column // of the job's cells
	late    bool      // was too slow, and is not run again: it would take the whole time limit again
}

// take runs the turn in a round.
func (t *turn) take(ctx context.Context, round int) error {
	if t.late {
		for _, c := range t.columns {
			c.pass()
		}
		return nil
	}
	results, err := t.run(ctx, t.job)
	if ctx.Err() != nil {
		// The results before the end count. A missing one is no failure.
		for i, one := range t.job.Cells {
			t.columns[i].enter(round, t.job, one, results, nil)
		}
		return context.Cause(ctx)
	}
	t.late = errors.Is(err, program.ErrTimeout)
	for i, one := range t.job.Cells {
		t.columns[i].enter(round, t.job, one, results, err)
	}
	return nil
}

// A bout is everything that is compared with each other: one case in all of its sizes by all contestants, and by us
// the cases to which its goals are ratios. Its turns follow each other directly, because the speed of the machine may
// change within a minute.
type bout struct {
	rows  []*row
	turns []*turn
}

// newBout returns the bout of a job of one case. The other cases are beside our turn.
func newBout(device string, j plan.Job, all []contestant, rounds int) *bout {
	b := new(bout)
	beside := make(map[string]*column) // by cell
	for _, standards := range plan.ByCase([]plan.Job{standardsOf(device, j)}) {
		t := &turn{contestant: all[0], job: standards}
		for _, one := range standards.Cells {
			c := &column{Series: stats.NewSeries(rounds)}
			beside[one.String()] = c
			t.columns = append(t.columns, c)
		}
		b.turns = append(b.turns, t)
	}
	for _, one := range j.Cells {
		b.rows = append(b.rows, newRow(device, one, all, rounds, func(standard cases.Cell) *column { return beside[standard.String()] }))
	}
	for _, c := range all {
		if c.name != ours && j.Cells[0].Case.Ours {
			continue
		}
		t := &turn{contestant: c, job: j}
		for _, r := range b.rows {
			t.columns = append(t.columns, r.Columns[c.name])
		}
		b.turns = append(b.turns, t)
	}
	return b
}

// An endedError reports that a comparison ended before its last turn, with the cause and what is missing.
type endedError struct {
	cause error
	lacks []string
}

func (e *endedError) Error() string { return e.cause.Error() }
func (e *endedError) Unwrap() error { return e.cause }

// compare makes all contestants, of which the first is ours, measure the cases of jobs in rounds. It then judges the
// results by the goals for device. A round goes bout by bout. A failure of a contestant does not end it. If ctx ends
// it the error is an endedError, and the rows have the results so far.
func compare(ctx context.Context, device string, jobs []plan.Job, all []contestant, rounds int, say func(string)) ([]*row, error) {
	bouts := layOut(device, jobs, all, rounds)
	rest := cli.NewForecast()
	for _, b := range bouts {
		for _, t := range b.turns {
			rest.Add(t.spell(), float64(rounds))
		}
	}
	done := 0
	for round := range rounds {
		for i, b := range bouts {
			for _, t := range stats.InRound(round, b.turns) {
				say(fmt.Sprintf("round %d of %d, case %d of %d: %s (%d ranks) by %s%s", round+1, rounds, i+1, len(bouts), t.job.Cells[0].Case.Name, t.job.Ranks, t.name, rest.String()))
				began := time.Now()
				if err := t.take(ctx, round); err != nil {
					return judged(bouts), &endedError{err, lacking(bouts, rounds, done)}
				}
				if t.late {
					rest.Drop(t.spell())
				} else {
					rest.Done(t.spell(), 1, time.Since(began))
				}
				done++
			}
		}
	}
	return judged(bouts), nil
}

// spell returns the name of the turn for messages.
func (t *turn) spell() string { return t.job.Cells[0].Case.Name + " by " + t.name }

// lacking lists the turns of bouts after the first done ones, by round.
func lacking(bouts []*bout, rounds, done int) []string {
	var lacks []string
	for round := range rounds {
		var turns []string
		whole := true
		for _, b := range bouts {
			for _, t := range stats.InRound(round, b.turns) {
				missing := len(slices.DeleteFunc(slices.Clone(t.columns), func(c *column) bool { return c.Values[round] != nil }))
				switch {
				case done > 0:
					done, whole = done-1, false
				case missing == 0:
					whole = false // the run ended when it was complete
				case missing < len(t.columns):
					turns, whole = append(turns, "the rest of "+t.spell()), false
				default:
					turns = append(turns, t.spell())
				}
			}
		}
		switch {
		case whole:
			lacks = append(lacks, fmt.Sprintf("all of round %d", round+1))
		case turns != nil:
			lacks = append(lacks, fmt.Sprintf("of round %d: %s", round+1, strings.Join(turns, ", ")))
		}
	}
	return lacks
}

// layOut returns the bouts of jobs.
func layOut(device string, jobs []plan.Job, all []contestant, rounds int) []*bout {
	var bouts []*bout
	for _, j := range plan.ByCase(jobs) {
		bouts = append(bouts, newBout(device, j, all, rounds))
	}
	return bouts
}

// judged returns the judged rows of bouts.
func judged(bouts []*bout) []*row {
	var rows []*row
	for _, b := range bouts {
		for _, r := range b.rows {
			r.judge()
			rows = append(rows, r)
		}
	}
	return rows
}
