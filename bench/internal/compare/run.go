package compare

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/stats"
)

// A Library is one column of a comparison.
type Library struct {
	Name string
	// Run measures the cells of a job. With an error it returns the results before it.
	Run func(ctx context.Context, j plan.Job) ([]plan.Result, error)
}

// Ours is the name of this library.
const Ours = "ours"

// An endedError reports that a comparison ended before its last run, with the cause and what is missing.
type endedError struct {
	cause error
	lacks []string
}

func (e *endedError) Error() string { return e.cause.Error() }
func (e *endedError) Unwrap() error { return e.cause }

// Run makes all libraries, of which the first is ours, measure the cases of jobs in rounds. It then judges the
// results by the goals for device. A round goes case by case. A failure of a library does not end it. If ctx ends
// it the error is an endedError, and the rows have the results so far.
func Run(ctx context.Context, device string, jobs []plan.Job, all []Library, rounds int, show func(string)) ([]*Row, error) {
	comparisons := Prepare(device, jobs, all, rounds)
	rest := cli.NewForecast()
	for _, b := range comparisons {
		for _, e := range b.Entries {
			rest.Add(e.String(), float64(rounds))
		}
	}
	done := 0
	for round := range rounds {
		for i, b := range comparisons {
			for _, e := range stats.InRound(round, b.Entries) {
				show(fmt.Sprintf("round %d of %d, case %d of %d: %s (%d ranks) by %s%s", round+1, rounds, i+1, len(comparisons), e.job.Cells[0].Case.Name, e.job.Ranks, e.Name, rest.Suffix()))
				began := time.Now()
				if err := e.Measure(ctx, round); err != nil {
					return Judged(comparisons), &endedError{err, lacking(comparisons, rounds, done)}
				}
				if e.TimedOut {
					rest.Drop(e.String())
				} else {
					rest.Done(e.String(), 1, time.Since(began))
				}
				done++
			}
		}
	}
	return Judged(comparisons), nil
}

// lacking lists the missing runs of comparisons after the first done ones, by round.
func lacking(comparisons []*CaseComparison, rounds, done int) []string {
	var lacks []string
	for round := range rounds {
		var runs []string
		whole := true
		for _, b := range comparisons {
			for _, e := range stats.InRound(round, b.Entries) {
				missing := len(slices.DeleteFunc(slices.Clone(e.columns), func(c *Column) bool { return c.Values[round] != nil }))
				switch {
				case done > 0:
					done, whole = done-1, false
				case missing == 0:
					whole = false // the run ended when it was complete
				case missing < len(e.columns):
					runs, whole = append(runs, "the rest of "+e.String()), false
				default:
					runs = append(runs, e.String())
				}
			}
		}
		switch {
		case whole:
			lacks = append(lacks, fmt.Sprintf("all of round %d", round+1))
		case runs != nil:
			lacks = append(lacks, fmt.Sprintf("of round %d: %s", round+1, strings.Join(runs, ", ")))
		}
	}
	return lacks
}

// Prepare returns the comparisons of jobs.
func Prepare(device string, jobs []plan.Job, all []Library, rounds int) []*CaseComparison {
	var comparisons []*CaseComparison
	for _, j := range plan.ByCase(jobs) {
		comparisons = append(comparisons, newComparison(device, j, all, rounds))
	}
	return comparisons
}

// Judged returns the judged rows of comparisons.
func Judged(comparisons []*CaseComparison) []*Row {
	var rows []*Row
	for _, b := range comparisons {
		for _, r := range b.Rows {
			r.judge()
			rows = append(rows, r)
		}
	}
	return rows
}
