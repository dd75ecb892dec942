package regcache

import (
	"math"
	"time"

	"github.com/onesided/rma/verbs"
)

// Costs are those that decide whether to register a buffer.
type Costs struct {
	verbs.Costs
	// LookUp is what it takes to find out that a buffer is registered: V in paper B.
	LookUp time.Duration
	// PageSize is that of what the card maps, in bytes.
	PageSize int
}

// Uses is the least number of uses of a buffer of size bytes, at least 1, for which to register
// it costs less than to copy it each time: n > R/(C-V) (paper B, 3.3.1). It is 0 if no number is.
func (c *Costs) Uses(size int) int {
	saved := c.copying(size) - c.LookUp.Seconds()
	if size < Floor || saved <= 0 {
		return 0
	}
	n := math.Floor(c.registering(size)/saved) + 1
	if n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// copying is what a copy of so many bytes takes, in seconds.
func (c *Costs) copying(size int) float64 {
	if c.CopyBandwidth == 0 {
		return c.CopyLatency.Seconds()
	}
	return c.CopyLatency.Seconds() + float64(size)/c.CopyBandwidth
}

// registering is what registering a buffer takes that begins with a page, in seconds.
func (c *Costs) registering(size int) float64 {
	pages := (size + c.PageSize - 1) / c.PageSize
	return c.Register.Seconds() + float64(pages-1)*c.RegisterPage.Seconds()
}

// A Speculation is at which part of the uses that pay a buffer is registered, in the hope that as many
// will follow as the others (paper B, 3.3.1).
type Speculation float64

// Quarter is the paper's.
const Quarter Speculation = 0.25

// Threshold is after how many uses a buffer is registered for which uses of them pay; 0 if none do.
func (s Speculation) Threshold(uses int) int {
	if uses == 0 {
		return 0
	}
	return max(int(float64(uses)*float64(s)), 1)
}
