package regcache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/traces"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
)

// measured are the costs of the papers' cards (paper C: 68 us and 0.2 us a page; paper B's minimum
// numbers of uses imply the copies).
var measured = regcache.Costs{
	Costs: verbs.Costs{
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		CopyLatency: 50 * time.Nanosecond, CopyBandwidth: 2.5e9,
		Latency: 1500 * time.Nanosecond, Bandwidth: 1.5e9,
	},
	LookUp:   50 * time.Nanosecond,
	PageSize: 4096,
}

// An account is what the uses of a trace cost.
type account struct {
	copied, registered, found int
	nanoseconds               float64
}

// play has a policy decide for each use of a trace. Buffers are 1 MiB from each other.
func play(trace *traces.Trace, costs *regcache.Costs, s regcache.Speculation, limits regcache.Limits) (a account) {
	p := regcache.NewPolicy[int](costs.Extra, s, limits)
	for u := range trace.Uses() {
		address := uint64(u.Buffer+1) << 20
		e, decision := p.Use(address, u.Bytes)
		using, copying, registering := costs.Extra(u.Bytes)
		a.nanoseconds += using
		switch decision {
		case regcache.Copy:
			a.copied++
			a.nanoseconds += copying
			continue
		case regcache.Register:
			a.registered++
			a.nanoseconds += registering
			e = p.Add(address, address+uint64(u.Bytes), u.Buffer)
		case regcache.Registered:
			a.found++
		}
		p.Release(e)
		for {
			if _, some := p.Ended(); !some {
				break
			}
		}
	}
	return a
}

var fixed = []regcache.Speculation{regcache.Always, regcache.Quarter, regcache.Half, regcache.Full, regcache.Never}

// dear are those of a fast card, for which some hundreds of uses pay.
var dear = regcache.Costs{
	Costs: verbs.Costs{
		Register: 45 * time.Microsecond, RegisterPage: 75 * time.Nanosecond,
		CopyLatency: 10 * time.Nanosecond, CopyBandwidth: 30e9,
		Latency: 1000 * time.Nanosecond, Bandwidth: 49e9,
	},
	PageSize: 4096,
}

// What learns is hardly slower than the best that does not, and better than any of these where buffers differ
// and few of them can be kept. A plain run has each trace on one card, with room for one part of its buffers,
// and each card with each part; with another seed it has others.
func TestAdaptive(t *testing.T) {
	type setting struct {
		name  string
		costs *regcache.Costs
		most  float64
		part  int
	}
	var settings []setting
	for _, part := range []int{1, 2, 10, 50} {
		settings = append(settings, setting{"measured", &measured, 1.05, part}, setting{"dear", &dear, 1.08, part})
	}
	for i, trace := range traces.All(1) {
		for _, turn := range testsize.Turns(3*i+1, len(settings), 1) {
			s := settings[turn]
			limits := regcache.Limits{Bytes: uint64(trace.Bytes() / s.part), Regions: plenty.Regions}
			learned := play(&trace, s.costs, regcache.Adaptive, limits)
			best, which := 0.0, regcache.Never
			for _, f := range fixed {
				if a := play(&trace, s.costs, f, limits); best == 0 || a.nanoseconds < best {
					best, which = a.nanoseconds, f
				}
			}
			name := fmt.Sprintf("%s: %s, 1/%d kept", s.name, trace.Name, s.part)
			t.Logf("%-30s %.3f of %-6v %+v", name, learned.nanoseconds/best, which, learned)
			require.LessOrEqual(t, learned.nanoseconds, s.most*best, name)
			if trace.Mixed && s.part == 50 && s.costs == &measured {
				require.Less(t, learned.nanoseconds, best, name)
			}
		}
	}
}
