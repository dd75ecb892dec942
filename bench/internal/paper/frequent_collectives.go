package paper

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/onesided/rma/bench/internal/stats"
)

// Broadcasts and scatters of part B, section 5.1.3, along a binomial tree of messages as in figure 4a. Ranks of a
// node pass them on in shared memory. A barrier, which is not measured, follows each. The time of a broadcast or
// scatter is the mean over the ranks. Until the barrier the card may read memory that was not copied; the figures
// include a curve of ranks that wait for that.

const (
	// manyRanks is the number of ranks of the larger job. The other has one rank for each node.
	manyRanks = 16
	// collectiveRounds are simulated of the paper's 10000. All buffers are registered by then, and all rounds take
	// the same time.
	collectiveRounds = 1000
)

func frequentCollectives(lengths []int) []*Figure {
	const profile, label = "connectx-ddr-2009", "bytes for a rank"
	var curves []curve
	for _, c := range messageCurves(true) {
		c.ranks = messageNodes
		curves = append(curves, c)
	}
	waiting := curves[1]
	waiting.short, waiting.name, waiting.waits = "waits", "the same, and waits until the card reads no buffer any more", true
	curves = append(curves, waiting)
	for _, c := range messageCurves(true) {
		c.short, c.name, c.ranks = c.short+"_16", c.name+", 16 ranks", manyRanks
		curves = append(curves, c)
	}
	broadcasts := Figure{
		name: "8a", title: "a broadcast to 4 ranks and to 16, by rings", xs: lengths, curves: curves,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: downTheTree((*messageRank).broadcast),
	}
	scatters := broadcasts
	scatters.name, scatters.title, scatters.measure = "8b", "a scatter to 4 ranks and to 16, by rings", downTheTree((*messageRank).scatter)
	lower := claim{name: "saved_16_of_4_at_4K", theirs: 100, unit: stats.Percent, kind: less, source: "5.1.3: a lower improvement", of: func(p *Plot) float64 {
		return 100 * (100 - p.share("on_16", "off_16", 4<<10)) / p.improvedAt(4<<10)
	}}
	waits := claim{name: "most_saved_waiting", unit: stats.Percent, kind: unstated, source: "the paper does not tell when the buffer of a send is the program's again", of: func(p *Plot) float64 {
		most := math.Inf(-1)
		for _, x := range p.X {
			most = max(most, 100-p.share("waits", "off", x))
		}
		return most
	}}
	return []*Figure{
		broadcasts.of("B", profile, label,
			claim{name: "most_saved", theirs: 25, unit: stats.Percent, of: mostImproved, source: "5.1.3, figure 8: up to 25 %", beyond: beyondTableCopies},
			waits, lower),
		scatters.of("B", profile, label, waits, lower,
			claim{name: "saved_5K_of_4K", theirs: 100, unit: stats.Percent, kind: less, source: "5.1.3: sharply decreases for more than 4 KiB", of: func(p *Plot) float64 {
				return 100 * p.improvedAt(5<<10) / p.improvedAt(4<<10)
			}}),
	}
}

// downTheTree measures a collective with a number of bytes for each rank. A rank's memory has room for those of all.
func downTheTree(collective func(r *messageRank, into []byte) error) measurement {
	return func(_ context.Context, f *Figure, c *curve, o *Options) (values []float64, err error) {
		for _, n := range f.xs {
			rounds := make([]time.Duration, collectiveRounds)
			err := f.withMessages(o, c.messages, c.ranks, n*c.ranks, func(r *messageRank) error {
				into := make([]byte, n)
				iterate := func() (took time.Duration, err error) {
					if err := r.barrier(); err != nil {
						return 0, err
					}
					begun := r.device.Now()
					err = collective(r, into)
					if c.waits {
						err = errors.Join(err, r.settle())
					}
					took = r.device.Now() - begun
					return took, errors.Join(err, r.settle())
				}
				if err := r.warm(func() error { _, err := iterate(); return err }); err != nil {
					return err
				}
				for i := range rounds {
					took, err := iterate()
					if err != nil {
						return err
					}
					rounds[i] += took
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			values = append(values, inMicroseconds(meanOf(rounds))/float64(c.ranks))
		}
		return values, nil
	}
}

// meanOf returns the mean over frequentUses rounds. Rounds that are not given count as the last given one.
func meanOf(rounds []time.Duration) time.Duration {
	var all, last time.Duration
	for i, took := range rounds {
		all += took
		if i >= len(rounds)-steadyUses {
			last += took
		}
	}
	return (all + time.Duration(frequentUses-len(rounds))*last/steadyUses) / frequentUses
}

// broadcast copies the first len(into) bytes of rank 0's memory to all ranks.
func (r *messageRank) broadcast(into []byte) error {
	n := len(into)
	if parent := r.parent(); parent >= 0 {
		if err := r.receive(parent, r.buffer(0, n)); err != nil {
			return err
		}
	}
	for child := range r.children {
		if err := r.send(child, 0, n); err != nil {
			return err
		}
	}
	return nil
}

// scatter sends each rank its part of rank 0's memory. The parts that a rank passes on are in memory of this call
// only, so counting their uses would be pointless.
func (r *messageRank) scatter(into []byte) error {
	n := len(into)
	if r.rank == 0 {
		for child, ranks := range r.children {
			if err := r.send(child, child*n, ranks*n); err != nil {
				return err
			}
		}
		r.device.Copy(into, r.buffer(0, n))
		return nil
	}
	all := 1
	for _, ranks := range r.children {
		all += ranks
	}
	if all == 1 {
		return r.receive(r.parent(), into)
	}
	parts := r.buffer(0, all*n)
	if err := r.receive(r.parent(), parts); err != nil {
		return err
	}
	for child, ranks := range r.children {
		if err := r.sendOnce(child, parts[(child-r.rank)*n:][:ranks*n]); err != nil {
			return err
		}
	}
	r.device.Copy(into, parts[:n])
	return nil
}
