package window

import (
	"context"
	"errors"

	"github.com/onesided/rma/world"
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

// agreeOnReach has every rank of a window over the programs' own memory try to map,
// else to read, the next rank's part that could be mapped, and all take the worst
// that was found. One peer stands for all: on one host they are processes of one
// user.
func (c *creation) agreeOnReach(ctx context.Context) (reach, error) {
	if c.found == nil {
		c.found = new(description)
		c.found.reach, c.fault = tryReach(c.world, c.all)
		if c.fault != nil {
			c.found.fail(c.fault, c.fault.Error())
		}
	}
	told := make([]description, c.world.Size())
	if err := c.gather(ctx, c.found, told); err != nil {
		return 0, err
	}
	if err := firstFailure(c.world, told, c.fault); err != nil {
		return 0, &unlikeError{err}
	}
	worst := reachMapped
	for rank := range told {
		worst = max(worst, told[rank].reach)
	}
	return worst, nil
}

func tryReach(w *world.World, all []description) (reach, error) {
	for step := 1; step < w.Size(); step++ {
		next := (w.Rank() + step) % w.Size()
		if !w.Mapped(next) || all[next].bytes == 0 {
			continue
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
	return reachMapped, nil
}
