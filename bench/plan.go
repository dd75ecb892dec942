package main

import (
	"cmp"
	"slices"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
)

// A launch is what one set of ranks measures.
type launch struct {
	ranks int
	cells []cases.Cell
}

// jobs arranges the requested cells as jobs. There is one job for all cases between two ranks, one for those without
// the library, and one for each number of ranks of the others. world is the number of ranks that a launcher has
// started, or 0. With a launcher there is one job.
func (r *request) jobs(world int) ([]launch, error) {
	cells, err := r.cells(world)
	if err != nil {
		return nil, err
	}
	var jobs []launch
	for _, one := range cells {
		ranks := cmp.Or(world, r.ranks, 2)
		switch one.Case.Kind {
		case cases.Alone:
			ranks = one.Size
		case cases.Raw:
			ranks = 2
		}
		if ranks < one.Case.FewestRanks() {
			return nil, cli.Usagef("%s needs at least %d ranks, there is %d", one.Case.Name, one.Case.FewestRanks(), ranks)
		}
		i := slices.IndexFunc(jobs, func(j launch) bool {
			return j.ranks == ranks && (world != 0 || one.Case.JobKind() == j.cells[0].Case.JobKind())
		})
		if i < 0 {
			i = len(jobs)
			jobs = append(jobs, launch{ranks: ranks})
		}
		jobs[i].cells = append(jobs[i].cells, one)
	}
	return jobs, nil
}

// cells returns the requested cells.
func (r *request) cells(world int) ([]cases.Cell, error) {
	var cells []cases.Cell
	if len(r.cases) == 0 {
		for _, c := range cases.All() {
			for _, size := range r.usual(c, world) {
				if c.CheckSize(size, world) == nil {
					cells = append(cells, cases.Cell{Case: c, Size: size})
				}
			}
		}
	}
	for _, s := range r.cases {
		if s.c.Kind == cases.Alone && s.sizes == nil && r.sizes != nil {
			return nil, cli.Usagef("the size of %s is the number of ranks: instead of -size use -n, or name it as %s:4,16", s.c.Name, s.c.Name)
		}
		sizes := s.sizes
		if sizes == nil {
			sizes = r.usual(s.c, world)
		}
		for _, size := range sizes {
			if err := s.c.CheckSize(size, world); err != nil {
				return nil, err
			}
			cells = append(cells, cases.Cell{Case: s.c, Size: size})
		}
	}
	return cells, nil
}

// usual returns the sizes of a case that is named without sizes.
func (r *request) usual(c *cases.Case, world int) []int {
	if ranks := cmp.Or(world, r.ranks); c.Kind == cases.Alone {
		switch {
		case r.sizes != nil:
			return nil
		case ranks != 0:
			return []int{ranks}
		}
		return c.Sizes
	}
	if r.sizes != nil && c.Limit != 0 {
		return r.sizes
	}
	return c.Sizes
}
