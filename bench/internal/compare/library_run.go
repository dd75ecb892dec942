package compare

import (
	"context"
	"errors"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
)

// A LibraryRun is the run of one library for one case in every round.
type LibraryRun struct {
	Library
	job      plan.Job
	columns  []*Column // of the job's cells
	TimedOut bool      // was too slow, and is not run again: it would take the whole time limit again
}

// Measure runs the library in a round.
func (t *LibraryRun) Measure(ctx context.Context, round int) error {
	if t.TimedOut {
		for _, c := range t.columns {
			c.Pass()
		}
		return nil
	}
	results, err := t.Run(ctx, t.job)
	if ctx.Err() != nil {
		// The results before the end count. A missing one is no failure.
		for i, one := range t.job.Cells {
			t.columns[i].Enter(round, t.job, one, results, nil)
		}
		return context.Cause(ctx)
	}
	t.TimedOut = errors.Is(err, program.ErrTimeout)
	for i, one := range t.job.Cells {
		t.columns[i].Enter(round, t.job, one, results, err)
	}
	return nil
}

// String returns the name of the run for messages.
func (t *LibraryRun) String() string { return t.job.Cells[0].Case.Name + " by " + t.Name }

// A CaseComparison is everything that is compared with each other: one case in all of its sizes by all libraries, and by us
// the cases to which its goals are ratios. Its runs follow each other directly, because the speed of the machine may
// change within a minute.
type CaseComparison struct {
	Rows []*Row
	Runs []*LibraryRun
}

// newComparison returns the comparison of a job of one case. The other cases are beside our run.
func newComparison(device string, j plan.Job, all []Library, rounds int) *CaseComparison {
	b := new(CaseComparison)
	beside := make(map[string]*Column) // by cell
	for _, standards := range plan.ByCase([]plan.Job{standardsOf(device, j)}) {
		t := &LibraryRun{Library: all[0], job: standards}
		for _, one := range standards.Cells {
			c := &Column{Series: stats.NewSeries(rounds)}
			beside[one.String()] = c
			t.columns = append(t.columns, c)
		}
		b.Runs = append(b.Runs, t)
	}
	for _, one := range j.Cells {
		b.Rows = append(b.Rows, newRow(device, one, all, rounds, func(standard cases.Cell) *Column { return beside[standard.String()] }))
	}
	for _, c := range all {
		if c.Name != Ours && j.Cells[0].Case.Ours {
			continue
		}
		t := &LibraryRun{Library: c, job: j}
		for _, r := range b.Rows {
			t.columns = append(t.columns, r.Columns[c.Name])
		}
		b.Runs = append(b.Runs, t)
	}
	return b
}
