package paper

import (
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
)

// Part A: "Scheduling of MPI-2 one-sided operations over InfiniBand", section 5. In both curves of a figure the
// operations of an epoch are deferred until the call that ends it. Off, each then goes by RDMA in program order, as
// in the paper's Direct One Sided implementation. The text does not print the sizes of its figures. Here they are
// powers of two from 4 bytes: until 1 MiB where large messages count, and until 16 KiB where small ones do.

// Reasons why ours may improve more than the paper's.
const (
	beyondOverlap = "the card of the profile loses nothing where reads and writes cross, up to the paper's base figures of 964 MB/s in one direction and 1905 in both, which allow 97.6 %, or half of a large message's time; the paper's card lost a part of that"
	beyondBus     = "below 16 KiB the base line waits for the latency of reads and not for the bus, and writes fill that time; what an MPI's own software takes for each operation, which would fill a part of it too, is not in the profile. gain_at_bus is where the bus is the bound"
	beyondPut     = "what an MPI's own software takes in each half of the ping-pong, in both curves, is not in the profile: the same microseconds saved are a larger part of less"
	beyondGet     = "a get that rides with the end of the epoch does not wait for the peer's post, which goes beyond the paper: the post, the answer to the last get and the next get cross in one time of the wire; and as with the put an MPI's own software is not in the profile"
)

// only leaves out all schemes but the given ones.
func only(ways scheduler.Scheme) tuning.Tuning {
	return tuning.Tuning{NoSchemes: scheduler.All &^ ways}
}

// powersOfTwo returns the powers of two from 4 to last.
func powersOfTwo(last int) []int {
	var sizes []int
	for size := 4; size <= last; size *= 2 {
		sizes = append(sizes, size)
	}
	return sizes
}

// schedulingFigures returns the figures of part A.
func schedulingFigures() []*Figure {
	inOrder := curve{short: "off", name: "Direct One Sided, in program order", tuning: only(scheduler.Defer)}
	reordered := []curve{inOrder, {short: "on", name: "Reordered: gets first, alternating with puts", tuning: only(scheduler.Defer | scheduler.GetsFirst | scheduler.Interleave)}}
	aggregated := []curve{inOrder, {short: "on", name: "Aggregated with the synchronization", tuning: only(scheduler.Defer | scheduler.Pack)}}

	throughput := Figure{
		name: "7", title: "16 puts, then 16 gets in an epoch", xs: powersOfTwo(1 << 20), curves: reordered,
		unit: stats.MegabytesPerSecond, yLabel: "throughput (MB/s, 10^6 bytes)", measure: caseAt("pattern16_bw", 1),
	}
	never := claim{name: "least_gain", kind: noLess, unit: stats.Percent, of: leastImproved, source: "5.2 tells of improvements only"}
	gain := claim{name: "most_gain", unit: stats.Percent, of: mostImproved, source: "5.2, pattern 1"}

	both := Figure{
		name: "8", title: "a put, then a get in each epoch of a ping-pong", xs: powersOfTwo(1 << 20), curves: reordered,
		unit: stats.Microseconds, yLabel: "time of an iteration (us)", logarithmic: true,
		measure: caseAt("pscw_both_lat", 2), // the case returns half of a round trip, the paper an iteration
	}
	saved := claim{name: "most_saved", unit: stats.Percent, of: mostImproved, source: "5.2, pattern 2"}
	unlike := []claim{
		{name: "least_saved", kind: noLess, unit: stats.Percent, of: leastImproved, source: "5.2 tells of improvements only"},
		{name: "large_over_small", kind: noLess, unit: stats.Percent, of: lastOverFirst, source: "5.2: especially for large messages"},
	}

	put := Figure{
		name: "9", title: "a put in each epoch of a ping-pong", xs: powersOfTwo(16 << 10), curves: aggregated,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: caseAt("pscw_put_lat", 1),
	}
	get := put
	get.name, get.title, get.measure = "10", "a get in each epoch of a ping-pong", caseAt("pscw_get_lat", 1)
	rides := claim{name: "most_saved", unit: stats.Percent, of: mostImproved, source: "5.3"}
	same := []claim{
		{name: "least_saved", kind: noLess, unit: stats.Percent, of: leastImproved, source: "5.3: better or the same"},
		{name: "saved_at_largest", kind: asGood, unit: stats.Percent, of: lastImproved, source: "5.3: the same for larger sizes"},
	}
	return []*Figure{
		throughput.on("a", "pcie-2005", gain.says(76, beyondOverlap), never, claim{name: "peak", theirs: 1788, unit: stats.MegabytesPerSecond, of: peak, source: "5.2, pattern 1"}),
		throughput.on("b", "pcix-2005", gain.says(8, beyondBus), never, claim{name: "gain_at_bus", theirs: 8, unit: stats.Percent, of: improvedAtBound, source: "5.2: the bus is the bound"}),
		both.on("a", "pcie-2005", append([]claim{saved.says(40, beyondOverlap)}, unlike...)...),
		both.on("b", "pcix-2005", append([]claim{saved.says(20, "")}, unlike...)...),
		put.on("a", "pcie-2005", append([]claim{rides.says(44, beyondPut)}, same...)...),
		put.on("b", "pcix-2005", append([]claim{rides.says(38, beyondPut)}, same...)...),
		get.on("a", "pcie-2005", append([]claim{rides.says(42, beyondGet)}, same...)...),
		get.on("b", "pcix-2005", append([]claim{rides.says(42, beyondGet)}, same...)...),
	}
}

// on completes the figure with a machine of part A and the paper's claims for it.
func (f Figure) on(letter, profile string, claims ...claim) *Figure {
	f.part, f.name, f.profile, f.xLabel, f.claims = "A", f.name+letter, profile, "bytes of an operation", claims
	return &f
}

// says completes the claim with the paper's value, and the reason why ours may be more.
func (c claim) says(theirs float64, beyond string) claim {
	c.theirs, c.beyond = theirs, beyond
	return c
}

// improvedAtBound returns the greatest improvement where the base line is within a tenth of its best. The bandwidth
// is the bound there.
func improvedAtBound(p *Plot) float64 {
	off, most := p.Curves[0].Values, 0.0
	for i, improved := range p.improvements() {
		if off[i] >= 0.9*slices.Max(off) {
			most = max(most, improved)
		}
	}
	return most
}
