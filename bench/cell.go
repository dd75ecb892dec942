package main

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/stats"
)

// A cell is a case at one size: one line of output.
type cell struct {
	c    *benchCase
	size int
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
		if size < c.fewest() || size > device.MaxRanks {
			return cli.Usagef("%s:%d: the size is the number of ranks, allowed are %d to %d", c.name, size, c.fewest(), device.MaxRanks)
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

// company returns the scene of the cases with which this one may share a job.
func (c *benchCase) company() scene {
	if c.scene == alone || c.scene == raw {
		return c.scene
	}
	return passive
}

// distributed reports whether the case has percentiles: it is a latency whose iterations rank 0 times.
func (c *benchCase) distributed() bool {
	return c.unit == stats.Microseconds && c.origin != nil && c.sample == nil && c.prepare == nil && !c.ofTarget
}

// arranges reports whether schemes can be compared by the case: it has epochs, which are timed together.
func (c *benchCase) arranges() bool {
	return c.origin != nil && c.sample == nil && c.scene != collective && c.scene != messages
}

// String returns the cell as the command line names it.
func (c cell) String() string { return fmt.Sprintf("%s:%d", c.c.name, c.size) }
