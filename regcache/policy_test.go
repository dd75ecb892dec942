package regcache_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
)

// costs are such that a buffer of 4 KiB pays from 31 uses on.
var costs = regcache.Costs{
	Costs:    verbs.Costs{Register: 60 * time.Microsecond, CopyBandwidth: 2e9},
	LookUp:   50 * time.Nanosecond,
	PageSize: 4096,
}

func TestPolicy(t *testing.T) {
	p := regcache.NewPolicy[int](costs.Extra, regcache.Quarter, plenty)
	use := func(address uint64, size int) (int, regcache.Decision) {
		e, decision := p.Use(address, size)
		require.Equal(t, decision == regcache.Registered, e != nil)
		if e == nil {
			return 0, decision
		}
		defer p.Release(e)
		return e.Region, decision
	}
	for range 6 {
		_, decision := use(1<<20, 4096)
		require.Equal(t, regcache.Copy, decision)
	}
	for range 2 {
		_, decision := use(1<<20, 4096)
		require.Equal(t, regcache.Register, decision, "as long as it could not be registered")
	}
	from, to := p.Cover(1<<20, 1<<20+4096)
	p.Release(p.Add(from, to, 1))
	for range 3 {
		region, decision := use(1<<20, 4096)
		require.Equal(t, regcache.Registered, decision)
		require.Equal(t, 1, region)
	}
	_, decision := use(1<<20, 4096-512)
	require.Equal(t, regcache.Registered, decision, "it is of the same class")
	_, decision = use(1<<20, 100)
	require.Equal(t, regcache.Copy, decision, "the card takes it with its request")

	// The memory is another's now.
	p.Invalidate(1<<20, 1<<20+1)
	for range 6 {
		_, decision = use(1<<20, 4096)
		require.Equal(t, regcache.Copy, decision, "it begins another life")
	}
	_, decision = use(1<<20, 4096)
	require.Equal(t, regcache.Register, decision)
	p.Release(p.Add(1<<20, 1<<20+4096, 2))
	region, _ := use(1<<20, 4096)
	require.Equal(t, 2, region)
}

// Where registering costs nothing a buffer is registered at its first use.
func TestPolicyOfNoCost(t *testing.T) {
	free := costs
	free.Register = 0
	p := regcache.NewPolicy[int](free.Extra, regcache.Quarter, plenty)
	_, decision := p.Use(4096, 4096)
	require.Equal(t, regcache.Register, decision)
	require.Equal(t, "register", decision.String())
}

// A part of what is registered is, from its first use on.
func TestPolicyOfParts(t *testing.T) {
	p := regcache.NewPolicy[int](costs.Extra, regcache.Quarter, plenty)
	p.Release(p.Add(1<<20, 1<<30, 1))
	for range 3 {
		for _, address := range []uint64{1 << 20, 1<<20 + 12345, 1 << 29} {
			e, decision := p.Use(address, 5000)
			require.Equal(t, regcache.Registered, decision)
			p.Release(e)
		}
	}
	e, decision := p.Use(1<<30-1, 5000)
	require.Nil(t, e)
	require.Equal(t, regcache.Copy, decision)
}

// Where more buffers are used in turn than can be kept, those that are kept stay, until they are not used
// any more.
func TestCrowded(t *testing.T) {
	const buffers, kept = 20, 12
	for _, limits := range []regcache.Limits{{Bytes: kept * 4096, Regions: 1000}, {Bytes: 1 << 30, Regions: kept}} {
		p := regcache.NewPolicy[int](costs.Extra, regcache.Adaptive, limits)
		registered := 0
		round := func(first uint64) (hits int) {
			for i := range uint64(buffers) {
				address := first + i<<20
				switch e, decision := p.Use(address, 4096); decision {
				case regcache.Registered:
					p.Release(e)
					hits++
				case regcache.Register:
					registered++
					p.Release(p.Add(address, address+4096, 1))
				}
			}
			return hits
		}
		for range 3 {
			round(1 << 30)
		}
		for range 1000 {
			require.Equal(t, kept, round(1<<30))
		}
		require.Equal(t, kept, registered)
		for range costs.Uses(4096) {
			round(1 << 40)
		}
		require.Equal(t, kept, round(1<<40), "the others are used no more")
		require.LessOrEqual(t, registered, 2*kept+buffers)
	}
}

// What can't be registered is not asked for again.
func TestReject(t *testing.T) {
	for _, s := range []regcache.Speculation{regcache.Adaptive, regcache.Always} {
		p := regcache.NewPolicy[int](costs.Extra, s, plenty)
		p.Reject(4096, 4096)
		_, decision := p.Use(4096, 4096)
		require.Equal(t, regcache.Register, decision, "it was not known")
		p.Reject(4096, 4096)
		for range 200 {
			_, decision = p.Use(4096, 4096)
			require.Equal(t, regcache.Copy, decision)
			_, decision = p.Peek(4096, 4096)
			require.Equal(t, regcache.Copy, decision)
		}
		_, decision = p.Use(8192, 4096)
		require.Equal(t, regcache.Register, decision)
	}
}

// Whatever happened since, to peek says what the last use did or what the cache has now, and counts
// nothing.
func TestPeek(t *testing.T) {
	for _, s := range []regcache.Speculation{regcache.Adaptive, regcache.Quarter, regcache.Never} {
		r := rand.New(rand.NewPCG(1, uint64(s)))
		p := regcache.NewPolicy[int](costs.Extra, s, regcache.Limits{Bytes: 60 << 10, Regions: 20})
		q := regcache.NewPolicy[int](costs.Extra, s, regcache.Limits{Bytes: 60 << 10, Regions: 20})
		_, decision := p.Peek(1<<40, 4096)
		require.Equal(t, regcache.Copy, decision, "it is not known")
		for range 20_000 {
			address, size := uint64(r.IntN(40)+1)<<13, 64<<r.IntN(8)
			e, decision := p.Use(address, size)
			other, same := q.Use(address, size)
			require.Equal(t, decision, same)
			for range r.IntN(3) {
				peeked, again := p.Peek(address, size)
				require.Equal(t, decision, again)
				require.Equal(t, e, peeked)
				if peeked != nil {
					p.Release(peeked)
				}
			}
			if decision == regcache.Register {
				e, other = p.Add(address, address+uint64(size), 1), q.Add(address, address+uint64(size), 1)
			}
			if e != nil {
				p.Release(e)
				q.Release(other)
			}
			if r.IntN(50) == 0 {
				p.Invalidate(address, address+100)
				q.Invalidate(address, address+100)
			}
		}
	}
}

func TestPolicyAllocatesNothing(t *testing.T) {
	p := regcache.NewPolicy[int](costs.Extra, regcache.Quarter, plenty)
	p.Release(p.Add(0, 1<<20, 1))
	use := func() {
		if e, _ := p.Use(4096, 4096); e != nil {
			p.Release(e)
		}
	}
	for range 10 {
		use()
	}
	require.Zero(t, testing.AllocsPerRun(1000, use))
}

// What it takes to find a registered buffer.
func BenchmarkPolicy(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(entriesName(n), func(b *testing.B) {
			all := addresses(n)
			free := costs
			free.Register = 0
			p := regcache.NewPolicy[int](free.Extra, regcache.Quarter, plenty)
			for i, a := range all {
				p.Release(p.Add(a, a+4096, i))
				e, _ := p.Use(a, 4096)
				p.Release(e)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); {
				e, _ := p.Use(all[i], 4096)
				p.Release(e)
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// What would not be kept is not registered.
func TestTooLongToKeep(t *testing.T) {
	for _, c := range []struct {
		limits regcache.Limits
		bytes  int
		kept   bool
	}{
		{regcache.Limits{Bytes: 1 << 20, Regions: 10}, 1 << 20, true},
		{regcache.Limits{Bytes: 1 << 20, Regions: 10}, 1<<20 + 1, false},
		{regcache.Limits{Bytes: 1 << 20}, 4096, false},
		{regcache.Limits{Regions: 10}, 4096, false},
	} {
		p := regcache.NewPolicy[int](costs.Extra, regcache.Full, c.limits)
		decision := regcache.Copy
		for range 10_000 {
			_, decision = p.Use(1<<30, c.bytes)
		}
		require.Equal(t, c.kept, decision == regcache.Register, "%+v", c)
	}
}
