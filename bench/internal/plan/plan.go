package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/program"
)

// A Job is what one set of ranks measures.
type Job struct {
	Ranks int
	Cells []cases.Cell
}

// Jobs arranges the requested cells as jobs. There is one job for all cases between two ranks, one for those without
// the library, and one for each number of ranks of the others. world is the number of ranks that a launcher has
// started, or 0. With a launcher there is one job.
func (r *Selection) Jobs(world int) ([]Job, error) {
	cells, err := r.chosen(world)
	if err != nil {
		return nil, err
	}
	var jobs []Job
	for _, one := range cells {
		ranks := cmp.Or(world, r.Ranks, 2)
		switch one.Case.Kind {
		case cases.Alone:
			ranks = one.Size
		case cases.Raw:
			ranks = 2
		}
		if ranks < one.Case.FewestRanks() {
			return nil, cli.Usagef("%s needs at least %d ranks, there is %d", one.Case.Name, one.Case.FewestRanks(), ranks)
		}
		i := slices.IndexFunc(jobs, func(j Job) bool {
			return j.Ranks == ranks && (world != 0 || one.Case.JobKind() == j.Cells[0].Case.JobKind())
		})
		if i < 0 {
			i = len(jobs)
			jobs = append(jobs, Job{Ranks: ranks})
		}
		jobs[i].Cells = append(jobs[i].Cells, one)
	}
	return jobs, nil
}

// chosen returns the requested cells.
func (r *Selection) chosen(world int) ([]cases.Cell, error) {
	var cells []cases.Cell
	if len(r.Cases) == 0 {
		for _, c := range cases.All() {
			for _, size := range r.usual(c, world) {
				if c.CheckSize(size, world) == nil {
					cells = append(cells, cases.Cell{Case: c, Size: size})
				}
			}
		}
	}
	for _, s := range r.Cases {
		if s.Case.Kind == cases.Alone && s.Sizes == nil && r.Sizes != nil {
			return nil, cli.Usagef("the size of %s is the number of ranks: instead of -size use -n, or name it as %s:4,16", s.Case.Name, s.Case.Name)
		}
		sizes := s.Sizes
		if sizes == nil {
			sizes = r.usual(s.Case, world)
		}
		for _, size := range sizes {
			if err := s.Case.CheckSize(size, world); err != nil {
				return nil, err
			}
			cells = append(cells, cases.Cell{Case: s.Case, Size: size})
		}
	}
	return cells, nil
}

// usual returns the sizes of a case that is named without sizes.
func (r *Selection) usual(c *cases.Case, world int) []int {
	if ranks := cmp.Or(world, r.Ranks); c.Kind == cases.Alone {
		switch {
		case r.Sizes != nil:
			return nil
		case ranks != 0:
			return []int{ranks}
		}
		return c.Sizes
	}
	if r.Sizes != nil && c.Limit != 0 {
		return r.Sizes
	}
	return c.Sizes
}

// Missing returns the reason why a job that ended with err has no result for a cell. err itself is the reason for the
// first cell without a result.
func (j Job) Missing(one cases.Cell, results []Result, err error) error {
	first := j.Cells[slices.IndexFunc(j.Cells, func(other cases.Cell) bool {
		return !slices.ContainsFunc(results, func(r Result) bool { return r.Of(other) })
	})]
	switch {
	case first == one:
		return err
	case errors.Is(err, program.ErrTimeout):
		return fmt.Errorf("%w: the time of its job was over", ErrNotBegun)
	}
	return fmt.Errorf("%w: its job failed at %s", ErrNotBegun, first.String())
}

// ErrNotBegun is the class of reasons of cells that were left out because their job ended.
var ErrNotBegun = errors.New("not begun")
