package regcache

import (
	"math"
	"time"

	"github.com/onesided/rma/verbs"
)

// Extra is what the two ways of a buffer of so many bytes cost, in nanoseconds: what a use of it takes if
// it is registered already, by how much longer that takes if it is copied, which is not positive where
// that takes no longer, and what it takes to register and deregister it once. In paper B the latter are
// C-V and R.
type Extra func(bytes int) (using, copying, registering float64)

// uses is the least number of uses of a buffer for which to register it costs less than to copy it
// each time: n > R/(C-V) (paper B, 3.3.1). It is 0 if no number is.
func uses(copying, registering float64) int {
	if copying <= 0 {
		return 0
	}
	n := math.Floor(registering/copying) + 1
	if n > math.MaxInt32/2 {
		return 0
	}
	return int(n)
}

// Costs are those of a device whose copies nothing hides.
type Costs struct {
	verbs.Costs
	// LookUp is what it takes to find out that a buffer is registered: V in paper B.
	LookUp time.Duration
	// PageSize is that of what the card maps, in bytes.
	PageSize int
}

// Extra is what it takes to write a buffer, what a copy takes more than to look it up, and what registering
// and deregistering it takes, if it begins with a page.
func (c *Costs) Extra(bytes int) (using, copying, registering float64) {
	using = float64(c.LookUp + c.Latency)
	if c.Bandwidth > 0 {
		using += float64(float64(bytes) / c.Bandwidth * float64(time.Second))
	}
	copying = float64(c.CopyLatency - c.LookUp)
	if c.CopyBandwidth > 0 {
		copying += float64(float64(bytes) / c.CopyBandwidth * float64(time.Second))
	}
	pages := (bytes + c.PageSize - 1) / c.PageSize
	registering = float64(c.Register + c.Deregister + time.Duration(pages-1)*(c.RegisterPage+c.DeregisterPage))
	return using, copying, registering
}

// Uses is the least number of uses of a buffer of size bytes, at least 1, for which to register
// it pays: n > R/(C-V) (paper B, 3.3.1). It is 0 if no number does.
func (c *Costs) Uses(size int) int {
	if size < Floor {
		return 0
	}
	_, copying, registering := c.Extra(size)
	return uses(copying, registering)
}

// A Speculation is after which part of the uses that pay a buffer is registered, in the hope that more will
// follow (paper B, 3.3.1).
type Speculation uint8

const (
	// Adaptive is, for each class of sizes, the one of the others that would have cost least
	// for the buffers that were seen.
	Adaptive Speculation = iota
	// Always is at the first use, even if it doesn't pay.
	Always
	// Quarter is the paper's: 25 %.
	Quarter
	// Half is 50 %.
	Half
	// Full is 100 %: it is certain that it would have paid.
	Full
	// Never is not at all.
	Never
	speculations
)

var speculationNames = [speculations]string{"adaptive", "always", "25%", "50%", "100%", "never"}

func (s Speculation) String() string { return speculationNames[s] }

// Threshold is after how many uses a buffer is registered for which uses of them pay, or 0 if it never
// is. That of Adaptive is the first.
func (s Speculation) Threshold(uses int) int {
	switch {
	case s == Always:
		return 1
	case s == Never || uses == 0:
		return 0
	case s == Adaptive:
		return 1
	case s == Quarter:
		return max(uses/4, 1)
	case s == Half:
		return max(uses/2, 1)
	}
	return uses
}
