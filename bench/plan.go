package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cli"
)

// A cell is a case at one size: one line of output.
type cell struct {
	c    *benchCase
	size int
}

// A launch is what one set of ranks measures.
type launch struct {
	ranks int
	cells []cell
}

// plan arranges the cells that o requests as jobs. There is one job for all cases between two ranks, one for those
// without the library, and one for each number of ranks of the others. world is the number of ranks that a launcher
// has started, or 0. With a launcher there is one job.
func plan(o *options, world int) ([]launch, error) {
	cells, err := chosen(o, world)
	if err != nil {
		return nil, err
	}
	var jobs []launch
	for _, one := range cells {
		ranks := cmp.Or(world, o.ranks, 2)
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

// company returns the scene of the cases with which this one may share a job.
func (c *benchCase) company() scene {
	if c.scene == alone || c.scene == raw {
		return c.scene
	}
	return passive
}

// chosen returns the cells that o requests.
func chosen(o *options, world int) ([]cell, error) {
	var cells []cell
	if len(o.cases) == 0 {
		for _, c := range cases() {
			for _, size := range c.usual(o, world) {
				if c.allows(size, world) == nil {
					cells = append(cells, cell{c, size})
				}
			}
		}
	}
	for _, s := range o.cases {
		if s.c.scene == alone && s.sizes == nil && o.sizes != nil {
			return nil, cli.Usagef("the size of %s is the number of ranks: instead of -size use -n, or name it as %s:4,16", s.c.name, s.c.name)
		}
		sizes := s.sizes
		if sizes == nil {
			sizes = s.c.usual(o, world)
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
func (c *benchCase) usual(o *options, world int) []int {
	if ranks := cmp.Or(world, o.ranks); c.scene == alone {
		switch {
		case o.sizes != nil:
			return nil
		case ranks != 0:
			return []int{ranks}
		}
		return c.sizes
	}
	if o.sizes != nil && c.limit != 0 {
		return o.sizes
	}
	return c.sizes
}

// allows returns an error if the case does not have this size.
func (c *benchCase) allows(size, world int) error {
	switch {
	case c.scene == raw && world != 0:
		return cli.Usagef("%s starts its processes itself: run it without a launcher", c.name)
	case c.scene == alone:
		if world != 0 && size != world {
			return cli.Usagef("%s:%d: the size is the number of ranks, and the launcher started %d", c.name, size, world)
		}
		if size < c.fewest() || size > maxRanks {
			return cli.Usagef("%s:%d: the size is the number of ranks, allowed are %d to %d", c.name, size, c.fewest(), maxRanks)
		}
	case c.limit == 0:
		if !slices.Contains(c.sizes, size) {
			return cli.Usagef("%s has no size %d: its size is always %d", c.name, size, c.sizes[0])
		}
	case size > c.limit || size%c.each != 0:
		if c.each > 1 {
			return cli.Usagef("%s has no size %d: allowed are multiples of %d up to %d bytes", c.name, size, c.each, c.limit)
		}
		return cli.Usagef("%s has no size %d: allowed are 1 to %d bytes", c.name, size, c.limit)
	}
	return nil
}

// spell returns the cell as the command line names it.
func spell(one cell) string { return fmt.Sprintf("%s:%d", one.c.name, one.size) }
