package regcache_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/regcache/traces"
	"github.com/onesided/rma/verbs"
)

// measured are the costs of the papers' cards (paper C: 68 us and 0.2 us a page; paper B's minimum
// numbers of uses imply the copies).
var measured = regcache.Costs{
	Costs: verbs.Costs{
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		CopyLatency: 50 * time.Nanosecond, CopyBandwidth: 2.5e9,
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
func play(trace *traces.Trace, s regcache.Speculation, limits regcache.Limits) (a account) {
	p := regcache.NewPolicy[int](measured.Extra, s, limits)
	for u := range trace.Uses() {
		address := uint64(u.Buffer+1) << 20
		e, verdict := p.Use(address, u.Bytes)
		copying, registering := measured.Extra(u.Bytes)
		a.nanoseconds += float64(measured.LookUp)
		switch verdict {
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

// What learns is at most 5 % worse than the best that does not, and better than any of these where
// buffers differ.
func TestAdaptive(t *testing.T) {
	for seed := range uint64(2) {
		for _, trace := range traces.All(seed) {
			learned := play(&trace, regcache.Adaptive, plenty)
			t.Logf("%-9s %-8s %+v", trace.Name, regcache.Adaptive, learned)
			best := 0.0
			for _, s := range fixed {
				a := play(&trace, s, plenty)
				t.Logf("%-9s %-8s %+v", trace.Name, s, a)
				if best == 0 || a.nanoseconds < best {
					best = a.nanoseconds
				}
			}
			t.Logf("%-9s %.3f of the best", trace.Name, learned.nanoseconds/best)
			if trace.Mixed {
				require.Less(t, learned.nanoseconds, best, trace.Name)
			} else {
				require.LessOrEqual(t, learned.nanoseconds, 1.05*best, trace.Name)
			}
		}
	}
}
