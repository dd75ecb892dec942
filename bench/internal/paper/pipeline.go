package paper

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/scheduler/transfer"
)

// Part E: "High performance RDMA protocols in HPC", section 6. Notified puts go in both directions between two ranks,
// or to both neighbors in rings of eight, as in the effective bandwidth benchmark (b_eff). The paper's receiver
// registers at the same time as its sender; here the window was registered when it was made. The paper copies on both
// sides; the target of a put copies nothing.
//
// The paper prints no time of a registration. By the profile, which uses those of paper C for cards of the same
// maker, one of 8 MiB takes 0.5 ms, and the wire 11 ms. No pipeline could gain 67 % from that.

const (
	// longMessage is the message length of figure 6 and, with 8 nodes, of b_eff.
	longMessage = 8 << 20
	// mostReused is the greatest number of uses of a buffer in figure 6.
	mostReused = 200
	// beffRanks is the number of ranks of the paper's b_eff. It repeats each measurement beffRepetitions times, and
	// takes the best.
	beffRanks, beffRepetitions = 8, 3

	beyondCopies = "the target of a put copies nothing, and what the origin copies goes in pieces, of which one is copied while another is on the wire"
)

func pipelineFigures() []*Figure {
	cache := moved("cache", "leave pinned: registered as a whole, and kept", transfer.Cache)
	pipeline := moved("pipeline", "pipeline: registered in pieces, for once", transfer.Pipeline)
	caching := moved("caching", "pipeline leave pinned: registered in pieces, and kept", transfer.CachingPipeline)
	copied := moved("copy", "copied in and out", transfer.Copy)
	const profile = "lioncub-2006"

	var sizes []int
	for n := 16 << 10; n <= longMessage; n *= 2 {
		sizes = append(sizes, n)
	}
	once := Figure{
		name: "5", title: "bandwidth of buffers that are used once", xs: sizes, unit: stats.MegabytesPerSecond, yLabel: "bandwidth (MB/s, 10^6 bytes)",
		curves: []curve{cache, pipeline, caching, copied}, measure: bandwidthAt(1),
	}

	var counts []int
	for n := 1; n < mostReused; n = max(n+1, n*21/20) {
		counts = append(counts, n)
	}
	counts = append(counts, mostReused)
	reused := Figure{
		name: "6", title: "bandwidth of 8 MiB by the uses of the buffer", xs: counts, counted: true, unit: stats.MegabytesPerSecond, yLabel: "bandwidth of all uses (MB/s, 10^6 bytes)",
		curves: once.curves, measure: bandwidthByReuse,
	}

	pingPong := Figure{
		name: "1a", title: "b_eff: there and back", xs: []int{1 << 20, 2 << 20, 4 << 20, longMessage}, unit: stats.MegabytesPerSecond, yLabel: "bandwidth (MB/s, 10^6 bytes)",
		curves: []curve{cache, caching, pipeline, copied}, measure: bandwidthAt(beffRepetitions),
	}
	rings := pingPong
	rings.name, rings.title, rings.measure = "1b", "b_eff: 8 ranks, each to both neighbors in rings, random ones too", ringBandwidth
	ofBest := func(curve string, theirs float64, source, beyond string) claim {
		return claim{name: curve + "_of_caching", theirs: theirs, unit: stats.Percent, source: source, beyond: beyond, of: func(p *Plot) float64 { return p.share(curve, "caching", longMessage) }}
	}

	// in claims the order of the table, the best first.
	in := func(order ...string) []claim {
		var claims []claim
		for i, worse := range order[1:] {
			better := order[i]
			claims = append(claims, claim{name: better + "_over_" + worse, theirs: 100, unit: stats.Percent, kind: noLess, source: "6.2, table 1: the order", of: func(p *Plot) float64 { return p.share(better, worse, longMessage) }})
		}
		return claims
	}

	return []*Figure{
		once.of("E", profile, "bytes of a message",
			claim{name: "most_gain_of_pieces", theirs: 67, unit: stats.Percent, of: mostOfPieces, source: "6.1, figure 5: up to 67 percent"},
			claim{name: "gain_at_8M", theirs: 67, unit: stats.Percent, of: lastImproved, source: "6.1, figure 5: the same; at which size is plotted only"}),
		reused.of("E", profile, "uses of the buffer",
			claim{name: "uses_to_reach_pipeline", theirs: 45, unit: uses, of: usesToReach, source: "6.1, figure 6: 40 to 50"},
			claim{name: "caching_over_cache_first", theirs: 100, unit: stats.Percent, kind: noLess, source: "6.1: ramps up much earlier", of: func(p *Plot) float64 { return p.share("caching", "cache", 1) }},
			claim{name: "caching_over_pipeline_last", theirs: 100, unit: stats.Percent, kind: noLess, source: "6.1: improves over the standard pipeline", of: func(p *Plot) float64 { return p.share("caching", "pipeline", mostReused) }}),
		pingPong.of("E", profile, "bytes of a message", append(in("caching", "pipeline", "copy", "cache"),
			claim{name: "caching", theirs: 743, unit: stats.MegabytesPerSecond, source: "6.2, table 1", of: func(p *Plot) float64 { return p.valueAt("caching", longMessage) }},
			ofBest("pipeline", 710.0/743*100, "6.2, table 1: 710 of 743", ""),
			ofBest("copy", 682.0/743*100, "6.2, table 1: 682 of 743", beyondCopies),
			ofBest("cache", 604.0/743*100, "6.2, table 1: 604 of 743", ""))...),
		rings.of("E", profile, "bytes of a message", append(in("caching", "pipeline", "cache", "copy"),
			claim{name: "caching", theirs: 676, unit: stats.MegabytesPerSecond, source: "6.2, table 1", of: func(p *Plot) float64 { return p.valueAt("caching", longMessage) }},
			ofBest("pipeline", 589.0/676*100, "6.2, table 1: 589 of 676", ""),
			ofBest("copy", 391.0/676*100, "6.2, table 1: 391 of 676", beyondCopies),
			ofBest("cache", 489.0/676*100, "6.2, table 1: 489 of 676", ""))...),
	}
}

// bandwidthByReuse measures the bandwidth of a number of uses of a buffer together, including the first.
func bandwidthByReuse(ctx context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
	one := transferCase{ranks: 2, bytes: longMessage, locked: true, body: func(ctx context.Context, s *transferStand) ([]float64, error) {
		return s.trips(ctx, longMessage, slices.Max(f.xs))
	}}
	trips, err := one.simulate(ctx, f, c, o)
	if err != nil {
		return nil, err
	}
	var values []float64
	sum, next := 0.0, 0
	for _, count := range f.xs {
		for ; next < count; next++ {
			sum += trips[next]
		}
		values = append(values, float64(count)*longMessage/sum/1e6)
	}
	return values, nil
}

// fewestPieces is the length of the shortest messages for which the pipeline registers anything. It copies shorter
// ones.
const fewestPieces = 256 << 10

// mostOfPieces returns the greatest gain of the pipeline at lengths at which it registers.
func mostOfPieces(p *Plot) float64 {
	most := math.Inf(-1)
	for _, x := range p.X {
		if x >= fewestPieces {
			most = max(most, p.improvedAt(x))
		}
	}
	return most
}

// usesToReach returns the least measured number of uses with which the cache is as good as the pipeline.
func usesToReach(p *Plot) float64 {
	for _, x := range p.X {
		if p.share("cache", "pipeline", x) >= 100 {
			return float64(x)
		}
	}
	return float64(p.X[len(p.X)-1] + 1)
}

// ringBandwidth measures what each rank sends to both neighbors in a ring, on average of the ring in rank order and
// of a random one. The best repetition of each counts.
var ringBandwidth = eachX(func(n int) transferCase {
	return transferCase{ranks: beffRanks, bytes: 2 * n, body: func(ctx context.Context, s *transferStand) ([]float64, error) {
		// Before that, connections are made and the library's own memory is registered.
		warm, err := s.buffers(2, n, n)
		if err != nil {
			return nil, err
		}
		mine, err := s.buffers(2, n, n)
		if err != nil {
			return nil, err
		}
		sum := 0.0
		rings := [][]int{inOrder(beffRanks), rand.New(rand.NewPCG(1, 0)).Perm(beffRanks)}
		for _, ring := range rings {
			if _, err := s.timed(warmTrips, func() error { return s.round(ctx, ring, warm) }); err != nil {
				return nil, err
			}
			best := 0.0
			for range beffRepetitions {
				took, err := s.timed(1, func() error { return s.round(ctx, ring, mine) })
				if err != nil {
					return nil, err
				}
				best = max(best, 2*float64(n)/took.Seconds()/1e6)
			}
			sum += best
		}
		return []float64{sum / float64(len(rings))}, nil
	}}
})

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// round runs a put to both neighbors in a ring, on all ranks, and their fence.
func (s *transferStand) round(ctx context.Context, ring []int, buffers [][]byte) error {
	at := slices.Index(ring, s.w.Rank())
	for i, buffer := range buffers {
		neighbor := ring[(at+2*i-1+len(ring))%len(ring)]
		if err := s.window.Put(buffer, neighbor, i*len(buffer)); err != nil {
			return err
		}
	}
	return s.window.Fence(ctx)
}
