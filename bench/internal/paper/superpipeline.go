package paper

import (
	"math"
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/scheduler/transfer"
)

// Part C: "A high performance superpipeline protocol for InfiniBand", sections 2 to 5. Notified puts go in both
// directions between two ranks, from buffers that the program registers (raw RDMA), or does not. The paper's receiver
// copies or registers, too; the target of a put need not:
//
//   - If the receiver finally copies the whole message, as in the naive copy, the ranks of that curve copy what was
//     put.
//   - If it registers, it does so while the sender does: the paper's asymptote has one registration. So only its
//     deregistration is missing here.
//   - If it copies sub-blocks while others arrive, its last copy is missing here: of 4 KiB, which take 0.4 us.

// Reasons why ours may be better than the paper's.
const (
	beyondFirst  = "the paper's test copies a first piece of 8 to 16 KiB before anything is on the wire, and its receiver a last block of 4 KiB, which by the profile together take about 14 % at 16 KiB; the library's first piece is so long that its copy and the gaps take the least time, and the target of a put copies nothing"
	beyondStages = "the library has no stage as long as the message: above 256 KiB what it copies goes in pieces, of which one is copied while another is on the wire, so that only the receiver's copy is seen"
)

func superpipelineFigures() []*Figure {
	raw := known("raw", "raw RDMA, of registered buffers")
	super := moved("super", "superpipeline", transfer.Superpipeline)
	register := moved("register", "registered each time", transfer.Register)
	naive := moved("copy", "copied each time, by both sides", transfer.Copy)
	naive.copiesOut = true
	half := moved("copy", "copied each time, by the origin", transfer.Copy)
	pipeline := moved("even", "pipeline of copies of the best even length", transfer.CopyPipeline)

	var sizes []int
	for n := 1 << 10; n <= 32<<20; n *= 2 {
		sizes = append(sizes, n)
	}
	bandwidth := Figure{
		xs: inSteps(sizes, 1.05), unit: stats.MegabytesPerSecond, yLabel: "bandwidth (MB/s, 10^6 bytes)", measure: bandwidthAt(3),
	}
	const largest = 32 << 20

	simple := bandwidth
	simple.name, simple.title = "2", "registering and copying, each as simple as it can be"
	simple.curves = []curve{raw, register, naive}
	lost := func(name, curve string, x int, theirs float64, source, beyond string) claim {
		return claim{name: name, theirs: theirs, unit: stats.Percent, kind: loss, source: source, beyond: beyond, of: func(p *Plot) float64 { return 100 - p.share(curve, "raw", x) }}
	}
	left := func(name, curve string, theirs float64, source, beyond string) claim {
		return claim{name: name, theirs: theirs, unit: stats.Percent, source: source, beyond: beyond, of: func(p *Plot) float64 { return p.share(curve, "raw", largest) }}
	}

	pipelines := bandwidth
	pipelines.name, pipelines.title = "6", "copies in pipelines"
	pipelines.curves = []curve{raw, super, pipeline, half}

	touched := bandwidth
	touched.name, touched.title = "7", "first and best use of a buffer"
	firstOf := func(c curve, short, name string) curve {
		c.short, c.name, c.first = short, name, true
		return c
	}
	cache := moved("cache", "registration cache, best", transfer.Cache)
	super.name = "superpipeline, best"
	touched.curves = []curve{firstOf(cache, "cache_1", "registration cache, first"), firstOf(super, "super_1", "superpipeline, first"), cache, super}

	const profile, label = "graphene-ddr", "bytes of a message"
	return []*Figure{
		simple.of("C", profile, label,
			lost("register_loses_at_64K", "register", 64<<10, 60, "2", ""),
			left("register_of_raw_at_32M", "register", 91, "2, by the equation", ""),
			left("copy_of_raw_at_32M", "copy", 57, "2, by the equation", beyondStages)),
		pipelines.of("C", profile, label,
			lost("super_loses_at_16K", "super", 16<<10, 15, "5", beyondFirst),
			claim{name: "super_loses_above_64K", theirs: 5, unit: stats.Percent, kind: less, source: "5", of: func(p *Plot) float64 {
				return 100 - p.leastShare("super", "raw", func(x int) bool { return x > 64<<10 })
			}},
			claim{name: "copy_over_even_below_16K", theirs: 100, unit: stats.Percent, kind: noLess, source: "3, figure 4", of: func(p *Plot) float64 {
				return p.leastShare("copy", "even", func(x int) bool { return x < 16<<10 })
			}}),
		touched.of("C", profile, label,
			claim{name: "super_first_of_best", theirs: 100, unit: stats.Percent, kind: asGood, source: "5: its best already at the first send", of: func(p *Plot) float64 {
				return p.leastShare("super_1", "super", func(x int) bool { return x >= 32<<10 })
			}},
			claim{name: "cache_first_of_best_at_64K", theirs: 40, unit: stats.Percent, source: "2: the first send is as with naive registration, which loses 60 %", of: func(p *Plot) float64 { return p.share("cache_1", "cache", 64<<10) }},
			claim{name: "super_over_cache_first", theirs: 100, unit: stats.Percent, kind: noLess, source: "5: the others get poor performance at first", of: func(p *Plot) float64 {
				return p.leastShare("super_1", "cache_1", func(x int) bool { return x >= 32<<10 })
			}},
			claim{name: "super_of_cache_best", theirs: 100, unit: stats.Percent, source: "5: roughly the same", of: func(p *Plot) float64 {
				return p.leastShare("super", "cache", func(x int) bool { return x >= 32<<10 })
			}}),
	}
}

// inSteps returns the sizes and further ones between them, each a factor times the one before.
func inSteps(sizes []int, factor float64) []int {
	fine := slices.Clone(sizes)
	for x := float64(sizes[0]); x < float64(sizes[len(sizes)-1]); x *= factor {
		fine = append(fine, int(x))
	}
	slices.Sort(fine)
	return slices.Compact(fine)
}

// share returns the ratio of a curve to another at one of the xs, in percent.
func (p *Plot) share(curve, of string, x int) float64 {
	return p.valueAt(curve, x) / p.valueAt(of, x) * 100
}

// leastShare returns the least share at some of the xs.
func (p *Plot) leastShare(curve, of string, at func(x int) bool) float64 {
	least := math.Inf(1)
	for _, x := range p.X {
		if at(x) {
			least = min(least, p.share(curve, of, x))
		}
	}
	return least
}
