package window

import (
	"context"
	"errors"
	"slices"

	"github.com/onesided/rma/internal/job"
)

// reach is how ranks that share memory reach each other's parts of a window, the
// better first. It is one for a window. Ranks that share none use links.
type reach uint32

const (
	// reachMapped: they map them.
	reachMapped reach = iota
	// reachSystem: the parts are the programs' own memory, in other processes,
	// which system calls read and write.
	reachSystem
	// reachMessages: those are not permitted either.
	reachMessages
)

// finding is what a rank has found of how it reaches others.
type finding struct {
	reach  reach
	failed bool
}

// agreeOnReach chooses how the ranks of a window over the programs' own memory reach each other. Every rank tries to
// map the next part that could be mapped. If it cannot, it tries to read it. All ranks take the worst result. One peer
// stands for all, because on one host they are processes of one user.
func (c *creation) agreeOnReach(ctx context.Context) (reach, error) {
	if c.found == nil {
		next := nextMapped(c.world, c.all)
		if next >= 0 {
			if err := c.world.Approach(ctx, "window."+c.call, next); err != nil {
				return 0, err
			}
		}
		c.found = new(finding)
		c.found.reach, c.fault = tryReach(c.world, c.all, next)
		c.found.failed = c.fault != nil
	}
	if c.findings == nil {
		told := make([]finding, c.world.Size())
		if err := gather(ctx, c, *c.found, told); err != nil {
			return 0, err
		}
		c.findings = told
	}
	told := c.findings
	if err := c.firstFailure(ctx, slices.IndexFunc(told, func(f finding) bool { return f.failed })); err != nil {
		return 0, err
	}
	worst := reachMapped
	for rank := range told {
		worst = max(worst, told[rank].reach)
	}
	return worst, nil
}

// nextMapped returns the next rank whose part could be mapped, or -1 if there is none.
func nextMapped(w *job.World, all []description) int {
	for step := 1; step < w.Size(); step++ {
		if next := (w.Rank() + step) % w.Size(); w.Mapped(next) && all[next].bytes > 0 {
			return next
		}
	}
	return -1
}

// tryReach finds out how this rank reaches the part of the next.
func tryReach(w *job.World, all []description, next int) (reach, error) {
	if next < 0 {
		return reachMapped, nil
	}
	neighbor, err := w.Neighbor(next)
	if err != nil {
		return 0, err
	}
	region := w.Place(next, &all[next].data)
	_, err = neighbor.Map(region)
	if err == nil || !errors.Is(err, errors.ErrUnsupported) {
		return reachMapped, err
	}
	var probe [1]byte
	err = neighbor.ReadAt(probe[:], region, 0)
	if err != nil && errors.Is(err, errors.ErrUnsupported) {
		return reachMessages, nil
	}
	return reachSystem, err
}
