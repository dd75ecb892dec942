package paper

import (
	"context"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/world"
)

// Part D, section 6.3.2: the collectives of this library, by send and receive or by the RDMA channel.

// collectiveRanks is the number of ranks of the paper's cluster, one on each node.
const collectiveRanks = 8

func collectiveFigures() []*Figure {
	const profile = "infinihost-2003"
	curves := []curve{
		{short: "send", name: "send and receive", tuning: tuning.Tuning{Rings: tuning.RingsNever}},
		{short: "rings", name: "RDMA channel", tuning: tuning.Tuning{Rings: tuning.RingsAlways}},
	}
	sizes := []int{8, 16, 64, 256, 1 << 10, 2 << 10}
	barriers := Figure{
		name: "15", title: "a barrier", xs: []int{2, 3, 4, 5, 6, 7, 8}, counted: true, curves: curves,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: amongRanks(func(x int) int { return x }, cases.Barrier),
	}
	all := func(int) int { return collectiveRanks }
	sums := Figure{
		name: "16", title: "a sum over 8 ranks that all get", xs: sizes, curves: curves,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: amongRanks(all, cases.AllReduce),
	}
	broadcasts := sums
	broadcasts.name, broadcasts.title, broadcasts.measure = "17", "a broadcast to 8 ranks", amongRanks(all, cases.Broadcast)
	// The paper prints only that these gain.
	ahead := func(source string) []claim {
		return []claim{
			{name: "most_saved", unit: stats.Percent, kind: noLess, of: mostImproved, source: source},
			{name: "least_saved", unit: stats.Percent, kind: noLess, of: leastImproved, source: source},
		}
	}
	return []*Figure{
		barriers.of("D", profile, "ranks", ahead("6.3.2, figure 15: reduced significantly")...),
		sums.of("D", profile, "bytes", ahead("6.3.2, figure 16: improves the performance")...),
		broadcasts.of("D", profile, "bytes", ahead("6.3.2, figure 17: improves the performance")...),
	}
}

// amongRanks measures steps on ranks(x) ranks at each x. The steps before that are enough for rings to be used
// everywhere.
func amongRanks(ranks func(x int) int, of cases.Step) measurement {
	const warm, steps = 600, 200
	return func(ctx context.Context, f *Figure, c *curve, o *Options) (values []float64, err error) {
		for _, x := range f.xs {
			s, err := f.simulator(o)
			if err != nil {
				return nil, err
			}
			err = program.WithTimeout(ctx, o.Timeout, func(ctx context.Context) error {
				return device.Simulate(ctx, s, ranks(x), func(ctx context.Context, w *world.World) error {
					b := cases.ForCollectives(w, x)
					if err := cases.Loop(ctx, b, of, x, warm); err != nil {
						return err
					}
					begun := w.Now()
					err := cases.Loop(ctx, b, of, x, steps)
					if w.Rank() == 0 {
						values = append(values, inMicroseconds(w.Now()-begun)/steps)
					}
					return err
				}, c.tuned())
			})
			if err != nil {
				return nil, err
			}
		}
		return values, nil
	}
}
