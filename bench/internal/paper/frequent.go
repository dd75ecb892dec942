package paper

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
)

// Part B: "Efficient RDMA-based small-message communication for frequently used buffers". Here are one-sided
// operations (5.1.2); messages are in paper_frequent_messages.go and paper_frequent_collectives.go. Off, each
// operation copies its buffer to registered memory, or from it. On, the library decides, and so registers buffers
// that are used frequently.
//
// The figures do not compare the table of uses with a balanced tree as it grows, because look-ups of simulated ranks
// take no time. The benchmarks of package regcache compare them.

// frequentUses is the number of uses of the one buffer of figure 6.
const frequentUses = 10_000

// Reasons why ours may be more than the paper's.
const (
	beyondFence    = "what the paper saves is the same copy of a longer time: by its percentage an operation and its fence take it 16 to 19 us, which here take 11 to 12; an MPI's own software and the flags that its fence writes, in both curves, are not in the profile"
	beyondMessages = "the paper's is of messages, of which the receiver's copy stays, and what an MPI's own software takes is not in the profile; of one-sided operations it is plotted only"
)

func frequentFigures() []*Figure {
	curves := []curve{
		moved("off", "copied each time", transfer.Copy),
		moved("on", "as the library likes: copied, then registered"),
		moved("cache", "registered at the first use", transfer.Cache),
	}
	lengths := []int{128, 256, 512, 1 << 10, 2 << 10, 3 << 10, 4 << 10, 5 << 10, 6 << 10, 7 << 10, 8 << 10}

	least := Figure{
		name: "2", title: "uses from which on registering a buffer pays", xs: lengths[2:], unit: uses, yLabel: "uses", logarithmic: true,
		curves:  []curve{{short: "table", name: "the paper's table 2, one-sided"}, moved("here", "by what copies and registrations take here", transfer.Cache), {short: "regcache", name: "what package regcache takes them for, with deregistration"}},
		measure: leastUses,
	}
	var counts []claim
	for _, x := range least.xs {
		counts = append(counts, claim{name: "uses_" + bySize(x), theirs: paperUses[x], unit: uses, source: "table 2, one-sided", of: func(p *Plot) float64 { return p.valueAt("here", x) }})
	}

	put := Figure{
		name: "6a", title: "a put of a buffer that is used 10000 times, and its fence", xs: lengths, curves: curves,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: reusedAt(true),
	}
	get := put
	get.name, get.title, get.measure = "6b", "a get of a buffer that is used 10000 times, and its fence", reusedAt(false)
	from := func(name string, x int, theirs float64, kind claimKind, source string) claim {
		return claim{name: name, theirs: theirs, unit: stats.Percent, kind: kind, source: source, of: func(p *Plot) float64 { return p.improvedAt(x) }}
	}

	beside := Figure{
		name: "7a", title: "100 buffers back to back, the i-th used 10 i times", xs: []int{256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10}, curves: curves,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: spectrumAt(func(bytes int) int { return bytes }),
	}
	apart := beside
	apart.name, apart.title = "7b", "100 buffers in pages of their own, the i-th used 10 i times"
	apart.measure = spectrumAt(func(bytes int) int { return (bytes + 4095) &^ 4095 })
	spectrum := func() []claim {
		return []claim{
			{name: "most_saved", theirs: 12.7, unit: stats.Percent, of: mostImproved, source: "5.1.1, of messages", beyond: beyondMessages},
			{name: "saved_at_8K", kind: noLess, unit: stats.Percent, of: func(p *Plot) float64 { return p.improvedAt(8<<10) - mostImproved(p) }, source: "5.1.1: the highest is for 8 KiB"},
		}
	}

	oneSided := []*Figure{
		put.of("B", "connectx-ddr-2009", "bytes of an operation",
			claim{name: "saved_at_8K", theirs: 20, unit: stats.Percent, of: lastImproved, source: "5.1.2", beyond: beyondFence},
			from("saved_at_256", 256, 0, noLess, "5.1.2: improved for messages larger than 256 bytes")),
		get.of("B", "connectx-ddr-2009", "bytes of an operation",
			claim{name: "saved_at_8K", theirs: 17, unit: stats.Percent, of: lastImproved, source: "figure 6, plotted only", beyond: beyondFence},
			from("saved_at_3K", 3<<10, 0, noLess, "5.1.2: shows itself only after 3 KiB"),
			from("saved_at_1K", 1<<10, 0, noMore, "5.1.2: some loss for 1 KiB and less")),
		beside.of("B", "connectx-ddr-2009", "bytes of an operation", spectrum()...),
		apart.of("B", "connectx-ddr-2009", "bytes of an operation", append(spectrum(), from("saved_at_256", 256, 0, noMore, "5.1.1: even a loss for smaller messages"))...),
	}
	leastUsed := []*Figure{least.of("B", "connectx-ddr-2009", "bytes of an operation", counts...)}
	return slices.Concat(leastUsed, messageFigures(lengths), oneSided, frequentCollectives(lengths))
}

const uses = "uses"

// bySize formats a size in bytes, K or M for the names of cases.
func bySize(v int) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%gM", float64(v)/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%gK", float64(v)/(1<<10))
	}
	return fmt.Sprint(v)
}

// paperUses are the least numbers of uses that pay, from table 2.
var paperUses = map[int]float64{512: 196, 1 << 10: 128, 2 << 10: 128, 3 << 10: 125, 4 << 10: 56, 5 << 10: 33, 6 << 10: 29, 7 << 10: 26, 8 << 10: 25}

// of completes the figure with its part, its machine and the paper's claims.
func (f Figure) of(part, profile, xLabel string, claims ...claim) *Figure {
	f.part, f.profile, f.xLabel, f.claims = part, profile, xLabel, claims
	return &f
}

// improvedAt returns the improvement at one of the xs.
func (p *Plot) improvedAt(x int) float64 {
	for i, other := range p.X {
		if other == x {
			return p.improvements()[i]
		}
	}
	return math.NaN()
}

// fenced runs an operation of rank 0 and its fence. The other ranks run the fence only.
func (s *transferStand) fenced(ctx context.Context, write bool, buffer []byte) error {
	if s.w.Rank() == 0 {
		operate := s.window.Get
		if write {
			operate = s.window.Put
		}
		if err := operate(buffer, 1, 0); err != nil {
			return err
		}
	}
	return s.window.Fence(ctx)
}

// warm uses another buffer, so that connections are made and the library's own memory is registered.
func (s *transferStand) warm(ctx context.Context, bytes int) error {
	other, err := s.buffers(1, bytes, bytes)
	if err != nil {
		return err
	}
	for _, write := range []bool{true, false, true, false} {
		if err := s.fenced(ctx, write, other[0]); err != nil {
			return err
		}
	}
	return nil
}

// reusedAt measures an operation and its fence with one buffer that is used repeatedly.
func reusedAt(write bool) measurement { return useTimes(write, 0, frequentUses) }

// spectrumAt measures the same for puts of many buffers at a distance of stride. It takes every tenth of the paper's
// 1000 buffers, with all of its uses.
func spectrumAt(stride func(bytes int) int) measurement {
	return eachX(func(n int) transferCase {
		return transferCase{ranks: 2, bytes: n, body: func(ctx context.Context, s *transferStand) ([]float64, error) {
			if err := s.warm(ctx, n); err != nil {
				return nil, err
			}
			all, err := s.buffers(100, n, stride(n))
			if err != nil {
				return nil, err
			}
			iterations, begun := 0, s.w.Now()
			for i, buffer := range all {
				for range 10 * (i + 1) {
					iterations++
					if err := s.fenced(ctx, true, buffer); err != nil {
						return nil, err
					}
				}
			}
			return []float64{inMicroseconds(s.w.Now()-begun) / float64(iterations)}, nil
		}}
	})
}

// leastUses returns the least numbers of uses that pay: those of the paper, those from the times of uses here, and
// those that package regcache derives from the card's costs.
func leastUses(ctx context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
	var least []float64
	switch c.short {
	case "table":
		for _, n := range f.xs {
			least = append(least, paperUses[n])
		}
		return least, nil
	case "regcache":
		s, err := f.simulator(o)
		if err != nil {
			return nil, err
		}
		costs := regcache.Costs{Costs: s.Open().Costs(), PageSize: 4096}
		for _, n := range f.xs {
			least = append(least, float64(costs.Uses(n)))
		}
		return least, nil
	}
	copied := moved("copy", "", transfer.Copy)
	first, later := useTimes(true, 0, 1), useTimes(true, 1, 101)
	var times [3][]float64
	for i, one := range []struct {
		c       *curve
		measure measurement
	}{{&copied, later}, {c, first}, {c, later}} {
		values, err := one.measure(ctx, f, one.c, o)
		if err != nil {
			return nil, err
		}
		times[i] = values
	}
	for i := range f.xs {
		copying, registering := times[0][i]-times[2][i], times[1][i]-times[2][i]
		least = append(least, math.Floor(registering/copying)+1)
	}
	return least, nil
}

// useTimes measures an operation and its fence, on average over the uses of a buffer from use from until use to.
func useTimes(write bool, from, to int) measurement {
	return eachX(func(n int) transferCase {
		return transferCase{ranks: 2, bytes: n, body: func(ctx context.Context, s *transferStand) ([]float64, error) {
			if err := s.warm(ctx, n); err != nil {
				return nil, err
			}
			one, err := s.buffers(1, n, n)
			if err != nil {
				return nil, err
			}
			iterate := func() error { return s.fenced(ctx, write, one[0]) }
			if _, err := s.timed(from, iterate); err != nil {
				return nil, err
			}
			took, err := s.timed(to-from, iterate)
			return []float64{inMicroseconds(took)}, err
		}}
	})
}
