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
	use := func(address uint64, size int) (int, regcache.Verdict) {
		e, verdict := p.Use(address, size)
		require.Equal(t, verdict == regcache.Registered, e != nil)
		if e == nil {
			return 0, verdict
		}
		defer p.Release(e)
		return e.Region, verdict
	}
	for range 6 {
		_, verdict := use(1<<20, 4096)
		require.Equal(t, regcache.Copy, verdict)
	}
	for range 2 {
		_, verdict := use(1<<20, 4096)
		require.Equal(t, regcache.Register, verdict, "as long as it could not be registered")
	}
	from, to := p.Cover(1<<20, 1<<20+4096)
	p.Release(p.Add(from, to, 1))
	for range 3 {
		region, verdict := use(1<<20, 4096)
		require.Equal(t, regcache.Registered, verdict)
		require.Equal(t, 1, region)
	}
	_, verdict := use(1<<20, 4096-512)
	require.Equal(t, regcache.Registered, verdict, "it is of the same class")
	_, verdict = use(1<<20, 100)
	require.Equal(t, regcache.Copy, verdict, "the card takes it with its request")

	// The memory is another's now.
	p.Invalidate(1<<20, 1<<20+1)
	for range 6 {
		_, verdict = use(1<<20, 4096)
		require.Equal(t, regcache.Copy, verdict, "it begins another life")
	}
	_, verdict = use(1<<20, 4096)
	require.Equal(t, regcache.Register, verdict)
	p.Release(p.Add(1<<20, 1<<20+4096, 2))
	region, _ := use(1<<20, 4096)
	require.Equal(t, 2, region)
}

// Where registering costs nothing a buffer is registered at its first use.
func TestPolicyOfNoCost(t *testing.T) {
	free := costs
	free.Register = 0
	p := regcache.NewPolicy[int](free.Extra, regcache.Quarter, plenty)
	_, verdict := p.Use(4096, 4096)
	require.Equal(t, regcache.Register, verdict)
	require.Equal(t, "register", verdict.String())
}

// A part of what is registered is, from its first use on.
func TestPolicyOfParts(t *testing.T) {
	p := regcache.NewPolicy[int](costs.Extra, regcache.Quarter, plenty)
	p.Release(p.Add(1<<20, 1<<30, 1))
	for range 3 {
		for _, address := range []uint64{1 << 20, 1<<20 + 12345, 1 << 29} {
			e, verdict := p.Use(address, 5000)
			require.Equal(t, regcache.Registered, verdict)
			p.Release(e)
		}
	}
	e, verdict := p.Use(1<<30-1, 5000)
	require.Nil(t, e)
	require.Equal(t, regcache.Copy, verdict)
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
				switch e, verdict := p.Use(address, 4096); verdict {
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
func TestRefuse(t *testing.T) {
	for _, s := range []regcache.Speculation{regcache.Adaptive, regcache.Always} {
		p := regcache.NewPolicy[int](costs.Extra, s, plenty)
		p.Refuse(4096, 4096)
		_, verdict := p.Use(4096, 4096)
		require.Equal(t, regcache.Register, verdict, "it was not known")
		p.Refuse(4096, 4096)
		for range 200 {
			_, verdict = p.Use(4096, 4096)
			require.Equal(t, regcache.Copy, verdict)
			_, verdict = p.Peek(4096, 4096)
			require.Equal(t, regcache.Copy, verdict)
		}
		_, verdict = p.Use(8192, 4096)
		require.Equal(t, regcache.Register, verdict)
	}
}

// Whatever happened since, to peek says what the last use did or what the cache has now, and counts
// nothing.
func TestPeek(t *testing.T) {
	for _, s := range []regcache.Speculation{regcache.Adaptive, regcache.Quarter, regcache.Never} {
		r := rand.New(rand.NewPCG(1, uint64(s)))
		p := regcache.NewPolicy[int](costs.Extra, s, regcache.Limits{Bytes: 60 << 10, Regions: 20})
		q := regcache.NewPolicy[int](costs.Extra, s, regcache.Limits{Bytes: 60 << 10, Regions: 20})
		_, verdict := p.Peek(1<<40, 4096)
		require.Equal(t, regcache.Copy, verdict, "it is not known")
		for range 20_000 {
			address, size := uint64(r.IntN(40)+1)<<13, 64<<r.IntN(8)
			e, verdict := p.Use(address, size)
			other, same := q.Use(address, size)
			require.Equal(t, verdict, same)
			for range r.IntN(3) {
				peeked, again := p.Peek(address, size)
				require.Equal(t, verdict, again)
				require.Equal(t, e, peeked)
				if peeked != nil {
					p.Release(peeked)
				}
			}
			if verdict == regcache.Register {
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
		verdict := regcache.Copy
		for range 10_000 {
			_, verdict = p.Use(1<<30, c.bytes)
		}
		require.Equal(t, c.kept, verdict == regcache.Register, "%+v", c)
	}
}
