package regcache

import (
	"math"
	"time"

	"github.com/onesided/rma/verbs"
)

// Extra returns the costs of a buffer of a length, in nanoseconds: using is the time of a use if the buffer is
// registered. copying is how much longer a use takes if the buffer is copied; it is not positive if a copy takes no
// longer. registering is the time to register and deregister the buffer once. In paper B, copying is C-V and
// registering is R.
type Extra func(bytes int) (using, copying, registering float64)

// uses returns the least number of uses of a buffer for which registering costs less than copying each time: n >
// R/(C-V) (paper B, 3.3.1). It returns 0 if there is no such number.
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

// Costs are the costs of a device where nothing hides copies.
type Costs struct {
	verbs.Costs
	// LookUp is the time to find out that a buffer is registered: V in paper B.
	LookUp time.Duration
	// PageSize is the size of a page that the card maps, in bytes.
	PageSize int
}

// Extra returns the costs of a buffer that begins at a page boundary; see the type [Extra]. copying is the time of a
// copy less that of a look-up.
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

// Uses returns the least number of uses of a buffer of size bytes, at least 1, for which registering pays: n > R/(C-V)
// (paper B, 3.3.1). It returns 0 if there is no such number.
func (c *Costs) Uses(size int) int {
	if size < Floor {
		return 0
	}
	_, copying, registering := c.Extra(size)
	return uses(copying, registering)
}

// A Speculation is the fraction of the paying number of uses after which a buffer is registered (paper B, 3.3.1). The
// fraction speculates on more uses.
type Speculation uint8

const (
	// Adaptive uses, for each class of sizes, the other speculation that would have cost least for the buffers seen so
	// far.
	Adaptive Speculation = iota
	// Always registers at the first use, even if it does not pay.
	Always
	// Quarter is 25 %, the paper's choice.
	Quarter
	// Half is 50 %.
	Half
	// Full is 100 %: when a buffer is registered, its uses would already have paid for it.
	Full
	// Never registers no buffer.
	Never
	speculations
)

var speculationNames = [speculations]string{"adaptive", "always", "25%", "50%", "100%", "never"}

func (s Speculation) String() string { return speculationNames[s] }

// Threshold returns after how many uses a buffer is registered if uses of them pay, or 0 if it never is. Adaptive
// starts with this threshold.
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
