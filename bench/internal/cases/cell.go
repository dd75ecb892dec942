package cases

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/stats"
)

// A Cell is a case at one size: one line of output.
type Cell struct {
	Case *Case
	Size int
}

// CheckSize returns an error if the case does not have this size.
func (c *Case) CheckSize(size, world int) error {
	switch {
	case c.Kind == Raw && world != 0:
		return cli.Usagef("%s starts its processes itself: run it without a launcher", c.Name)
	case c.Kind == Alone:
		if world != 0 && size != world {
			return cli.Usagef("%s:%d: the size is the number of ranks, and the launcher started %d", c.Name, size, world)
		}
		if size < c.FewestRanks() || size > device.MaxRanks {
			return cli.Usagef("%s:%d: the size is the number of ranks, allowed are %d to %d", c.Name, size, c.FewestRanks(), device.MaxRanks)
		}
	case c.Limit == 0:
		if !slices.Contains(c.Sizes, size) {
			return cli.Usagef("%s has no size %d: its size is always %d", c.Name, size, c.Sizes[0])
		}
	case size > c.Limit || size%c.Each != 0:
		if c.Each > 1 {
			return cli.Usagef("%s has no size %d: allowed are multiples of %d up to %d bytes", c.Name, size, c.Each, c.Limit)
		}
		return cli.Usagef("%s has no size %d: allowed are 1 to %d bytes", c.Name, size, c.Limit)
	}
	return nil
}

// JobKind returns the kind of the cases with which this one may share a job.
func (c *Case) JobKind() Kind {
	if c.Kind == Alone || c.Kind == Raw {
		return c.Kind
	}
	return Passive
}

// HasPercentiles reports whether the case has percentiles: it is a latency whose iterations rank 0 times.
func (c *Case) HasPercentiles() bool {
	return c.Unit == stats.Microseconds && c.origin != nil && c.Sample == nil && c.Prepare == nil && !c.OfTarget
}

// HasEpochs reports whether schemes can be compared by the case: it has epochs, which are timed together.
func (c *Case) HasEpochs() bool {
	return c.origin != nil && c.Sample == nil && c.Kind != Collective && c.Kind != Messages
}

// String returns the cell as the command line names it.
func (c Cell) String() string { return fmt.Sprintf("%s:%d", c.Case.Name, c.Size) }
