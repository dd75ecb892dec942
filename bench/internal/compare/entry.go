package compare

import (
	"context"
	"errors"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
)

// An Entry is one library in the comparison of a case, and runs once in every round.
type Entry struct {
	Library
	job      plan.Job
	columns  []*Column // of the job's cells
	TimedOut bool      // was too slow, and is not run again: it would take the whole time limit again
}

// Measure runs the library in a round.
func (e *Entry) Measure(ctx context.Context, round int) error {
	if e.TimedOut {
		for _, c := range e.columns {
			c.Pass()
		}
		return nil
	}
	results, err := e.Run(ctx, e.job)
	if ctx.Err() != nil {
		// The results before the end count. A missing one is no failure.
		for i, one := range e.job.Cells {
			e.columns[i].Enter(round, e.job, one, results, nil)
		}
		return context.Cause(ctx)
	}
	e.TimedOut = errors.Is(err, program.ErrTimeout)
	for i, one := range e.job.Cells {
		e.columns[i].Enter(round, e.job, one, results, err)
	}
	return nil
}

// String returns the name of the entry for messages.
func (e *Entry) String() string { return e.job.Cells[0].Case.Name + " by " + e.Name }

// A CaseComparison is everything that is compared with each other: one case in all of its sizes by all libraries, and by us
// the cases to which its goals are ratios. Its runs follow each other directly, because the speed of the machine may
// change within a minute.
type CaseComparison struct {
	Rows    []*Row
	Entries []*Entry
}

// newComparison returns the comparison of a job of one case. The other cases are beside our run.
func newComparison(device string, j plan.Job, all []Library, rounds int) *CaseComparison {
	b := new(CaseComparison)
	beside := make(map[string]*Column) // by cell
	for _, standards := range plan.ByCase([]plan.Job{standardsOf(device, j)}) {
		e := &Entry{Library: all[0], job: standards}
		for _, one := range standards.Cells {
			c := &Column{Series: stats.NewSeries(rounds)}
			beside[one.String()] = c
			e.columns = append(e.columns, c)
		}
		b.Entries = append(b.Entries, e)
	}
	for _, one := range j.Cells {
		b.Rows = append(b.Rows, newRow(device, one, all, rounds, func(standard cases.Cell) *Column { return beside[standard.String()] }))
	}
	for _, c := range all {
		if c.Name != Ours && j.Cells[0].Case.Ours {
			continue
		}
		e := &Entry{Library: c, job: j}
		for _, r := range b.Rows {
			e.columns = append(e.columns, r.Columns[c.Name])
		}
		b.Entries = append(b.Entries, e)
	}
	return b
}
