package main

import (
	"cmp"
	"slices"

	"github.com/onesided/rma/bench/internal/cli"
)

// A launch is what one set of ranks measures.
type launch struct {
	ranks int
	cells []cell
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
		switch one.c.scene {
		case alone:
			ranks = one.size
		case raw:
			ranks = 2
		}
		if ranks < one.c.fewest() {
			return nil, cli.Usagef("%s needs at least %d ranks, there is %d", one.c.name, one.c.fewest(), ranks)
		}
		i := slices.IndexFunc(jobs, func(j launch) bool {
			return j.ranks == ranks && (world != 0 || one.c.company() == j.cells[0].c.company())
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
func (r *request) cells(world int) ([]cell, error) {
	var cells []cell
	if len(r.cases) == 0 {
		for _, c := range cases() {
			for _, size := range r.usual(c, world) {
				if c.allows(size, world) == nil {
					cells = append(cells, cell{c, size})
				}
			}
		}
	}
	for _, s := range r.cases {
		if s.c.scene == alone && s.sizes == nil && r.sizes != nil {
			return nil, cli.Usagef("the size of %s is the number of ranks: instead of -size use -n, or name it as %s:4,16", s.c.name, s.c.name)
		}
		sizes := s.sizes
		if sizes == nil {
			sizes = r.usual(s.c, world)
		}
		for _, size := range sizes {
			if err := s.c.allows(size, world); err != nil {
				return nil, err
			}
			cells = append(cells, cell{s.c, size})
		}
	}
	return cells, nil
}

// usual returns the sizes of a case that is named without sizes.
func (r *request) usual(c *benchCase, world int) []int {
	if ranks := cmp.Or(world, r.ranks); c.scene == alone {
		switch {
		case r.sizes != nil:
			return nil
		case ranks != 0:
			return []int{ranks}
		}
		return c.sizes
	}
	if r.sizes != nil && c.limit != 0 {
		return r.sizes
	}
	return c.sizes
}
