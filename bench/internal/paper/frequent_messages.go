package paper

import (
	"context"
	"math"
	"slices"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/regcache"
)

// Part B, sections 3.3.1 and 5.1.1: messages in both directions between two ranks of paper_messages.go.

const (
	// warmMessages go each way, copied, before anything is measured, so that rings are in use, if enabled.
	warmMessages = 200
	// steadyUses is a number of uses after which a buffer is either copied or registered for good.
	steadyUses = 100
)

// beyondTableCopies is the reason why ours may save more than the paper's.
const beyondTableCopies = "by the paper's table 2 a message of 8 KiB that is not copied saves 2.1 us, or 14 % of 15 us, and here 3.2 of 13.6: its look-ups take time, and the profile has the rate of copies from its one-sided operations"

// paperFast and paperNonFast are the other columns of table 2.
var (
	paperFast    = map[int]float64{512: 432, 1 << 10: 200, 2 << 10: 110, 3 << 10: 76, 4 << 10: 60, 5 << 10: 48, 6 << 10: 40, 7 << 10: 36, 8 << 10: 32}
	paperNonFast = map[int]float64{512: 1568, 1 << 10: 448, 2 << 10: 224, 3 << 10: 131, 4 << 10: 95, 5 << 10: 75, 6 << 10: 65, 7 << 10: 55, 8 << 10: 49}
)

// messageFigures returns the figures of messages with the paper's lengths.
func messageFigures(lengths []int) []*Figure {
	const profile, label = "connectx-ddr-2009", "bytes of a message"
	fast, nonFast := messageCurves(true), messageCurves(false)
	withApart := func(curves []curve) []curve {
		c := curves[1]
		c.short, c.name, c.apart = "apart", c.name+", in pages of their own", true
		return append(slices.Clone(curves), c)
	}

	counts := func(name, path string, fast bool, theirs map[int]float64) *Figure {
		xs := lengths[2:]
		f := Figure{
			name: name, title: "uses from which on registering a buffer of messages pays, " + path, xs: xs, unit: uses, yLabel: "uses", logarithmic: true,
			curves: []curve{
				{short: "table", name: "the paper's table 2, " + path},
				{short: "here", name: "by what copies and registrations take here", messages: mode{fast, regcache.Always}},
			},
			measure: leastMessages(theirs),
		}
		var claims []claim
		for _, x := range xs {
			claims = append(claims, claim{name: "uses_" + bySize(x), theirs: theirs[x], unit: uses, source: "table 2, " + path, of: func(p *Plot) float64 { return p.valueAt("here", x) }})
		}
		return f.of("B", profile, label, claims...)
	}
	reused := Figure{
		name: "4a", title: "a message of a buffer that is used 10000 times, by rings", xs: lengths, curves: fast,
		unit: stats.Microseconds, yLabel: "latency (us)", measure: reusedMessages,
	}
	sent := reused
	sent.name, sent.title = "4b", "a message of a buffer that is used 10000 times, by send and receive"
	sent.curves = slices.Clone(nonFast)
	for _, c := range fast {
		c.short, c.name = "fast_"+c.short, c.name+", by rings"
		sent.curves = append(sent.curves, c)
	}

	spectrum := Figure{
		name: "5a", title: "messages of 100 buffers, the i-th used 10 i times, by rings", xs: []int{256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10}, curves: withApart(fast),
		unit: stats.Microseconds, yLabel: "latency (us)", measure: spectrumOfMessages,
	}
	spectrumSent := spectrum
	spectrumSent.name, spectrumSent.title = "5b", "messages of 100 buffers, the i-th used 10 i times, by send and receive"
	spectrumSent.curves = withApart(nonFast)
	most := claim{name: "most_saved", theirs: 12.7, unit: stats.Percent, of: mostImproved, source: "5.1.1, figure 5", beyond: beyondTableCopies}
	last := claim{name: "saved_at_8K", kind: noLess, unit: stats.Percent, of: func(p *Plot) float64 { return lastImproved(p) - mostImproved(p) }, source: "5.1.1: the highest is for 8 KiB"}
	loses := claim{name: "apart_saved_at_256", kind: noMore, unit: stats.Percent, of: func(p *Plot) float64 { return 100 - p.share("apart", "off", 256) }, source: "5.1.1: even a loss for smaller messages"}

	return []*Figure{
		counts("2fast", "fast path", true, paperFast),
		counts("2nonfast", "non-fast path", false, paperNonFast),
		reused.of("B", profile, label, claim{name: "most_saved", theirs: 14, unit: stats.Percent, of: mostImproved, source: "5.1.1, figure 4a", beyond: beyondTableCopies}),
		sent.of("B", profile, label, claim{name: "saved_of_fast_at_8K", theirs: 100, unit: stats.Percent, kind: less, source: "5.1.1: lower than the fast path's", of: func(p *Plot) float64 {
			return 100 * (100 - p.share("on", "off", 8<<10)) / (100 - p.share("fast_on", "fast_off", 8<<10))
		}}),
		spectrum.of("B", profile, label, most, last, loses),
		spectrumSent.of("B", profile, label, last),
	}
}

// messageCurves returns the curves of messages, by rings or not. Their buffers are copied each time, or handled as
// package regcache decides.
func messageCurves(fast bool) []curve {
	return []curve{
		{short: "off", name: "copied each time", messages: mode{fast, regcache.Never}},
		{short: "on", name: "copied, then registered", messages: mode{fast, regcache.Adaptive}},
	}
}

// thereAndBack sends a buffer from rank 0 to rank 1, and then one back.
func (r *messageRank) thereAndBack(from int, into []byte) error {
	first := func() error { return r.send(1-r.rank, from, len(into)) }
	second := func() error { return r.receive(1-r.rank, into) }
	if r.rank == 1 {
		first, second = second, first
	}
	if err := first(); err != nil {
		return err
	}
	if err := second(); err != nil {
		return err
	}
	return r.settle()
}

// oneWay returns the time of a message of a buffer in microseconds, on average of times exchanges.
func (r *messageRank) oneWay(from int, into []byte, times int) (float64, error) {
	begun := r.device.Now()
	for range times {
		if err := r.thereAndBack(from, into); err != nil {
			return 0, err
		}
	}
	return inMicroseconds(r.device.Now()-begun) / 2 / float64(times), nil
}

// warm repeats iterate, with all that is sent copied.
func (r *messageRank) warm(iterate func() error) error {
	policy := r.policy
	r.policy = nil
	for range warmMessages {
		if err := iterate(); err != nil {
			return err
		}
	}
	r.policy = policy
	return nil
}

// betweenTwo makes two ranks measure messages, with bytes of buffers, and returns the results of rank 0.
func (f *Figure) betweenTwo(o *Options, m mode, bytes, memory int, body func(r *messageRank, into []byte) ([]float64, error)) (values []float64, err error) {
	err = f.withMessages(o, m, 2, memory, func(r *messageRank) error {
		into := make([]byte, bytes)
		if err := r.warm(func() error { return r.thereAndBack(0, into) }); err != nil {
			return err
		}
		measured, err := body(r, into)
		if r.rank == 0 {
			values = measured
		}
		return err
	})
	return values, err
}

// reusedMessages measures the latency of messages of one buffer that is used repeatedly.
func reusedMessages(_ context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
	var values []float64
	for _, n := range f.xs {
		value, err := f.betweenTwo(o, c.messages, n, n, func(r *messageRank, into []byte) ([]float64, error) {
			value, err := r.oneWay(0, into, frequentUses)
			return []float64{value}, err
		})
		if err != nil {
			return nil, err
		}
		values = append(values, value...)
	}
	return values, nil
}

// spectrumOfMessages measures the same for buffers of which each is used more often than the one before. It takes
// every tenth of the paper's 1000, with all of its uses. The buffers are contiguous, or each begins with a page.
func spectrumOfMessages(_ context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
	const buffers = 100
	var values []float64
	for _, n := range f.xs {
		stride := n
		if c.apart {
			stride = (n + cardPage - 1) &^ (cardPage - 1)
		}
		value, err := f.betweenTwo(o, c.messages, n, buffers*stride, func(r *messageRank, into []byte) ([]float64, error) {
			iterations, begun := 0, r.device.Now()
			for i := range buffers {
				times := 10 * (i + 1)
				iterations += times
				if _, err := r.oneWay(i*stride, into, times); err != nil {
					return nil, err
				}
			}
			return []float64{inMicroseconds(r.device.Now()-begun) / 2 / float64(iterations)}, nil
		})
		if err != nil {
			return nil, err
		}
		values = append(values, value...)
	}
	return values, nil
}

// leastMessages returns the least numbers of uses that pay: those of the paper, and those from the times of uses
// here.
func leastMessages(theirs map[int]float64) measurement {
	return func(_ context.Context, f *Figure, c *curve, o *Options) (least []float64, err error) {
		for _, n := range f.xs {
			if c.short == "table" {
				least = append(least, theirs[n])
				continue
			}
			firstAndLater := func(s regcache.Speculation) ([]float64, error) {
				return f.betweenTwo(o, mode{c.messages.fast, s}, n, n, func(r *messageRank, into []byte) ([]float64, error) {
					first, err := r.oneWay(0, into, 1)
					if err != nil {
						return nil, err
					}
					later, err := r.oneWay(0, into, steadyUses)
					return []float64{first, later}, err
				})
			}
			copied, err := firstAndLater(regcache.Never)
			if err != nil {
				return nil, err
			}
			registered, err := firstAndLater(regcache.Always)
			if err != nil {
				return nil, err
			}
			least = append(least, math.Floor((registered[0]-registered[1])/(copied[1]-registered[1]))+1)
		}
		return least, nil
	}
}
