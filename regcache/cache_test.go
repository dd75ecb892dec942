package regcache_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/regcache"
)

// ended gives the regions that are to be deregistered.
func ended(c *regcache.Cache[int]) (all []int) {
	for {
		region, some := c.Ended()
		if !some {
			return all
		}
		all = append(all, region)
	}
}

var plenty = regcache.Limits{Bytes: 1 << 40, Regions: 1 << 20}

func add(c *regcache.Cache[int], from, to uint64, region int) { c.Release(c.Add(from, to, region)) }

// found is the region that has an extent, 0 if none has.
func found(c *regcache.Cache[int], from, to uint64) int {
	e := c.Find(from, to)
	if e == nil {
		return 0
	}
	defer c.Release(e)
	return e.Region
}

func TestFind(t *testing.T) {
	c := regcache.New[int](plenty)
	require.Zero(t, found(c, 0, 10))
	add(c, 100, 200, 1)
	add(c, 200, 300, 2)
	for _, f := range []struct {
		from, to uint64
		region   int
	}{{100, 200, 1}, {100, 101, 1}, {199, 200, 1}, {99, 150, 0}, {150, 201, 0}, {200, 300, 2}, {250, 260, 2}, {300, 301, 0}, {0, 1, 0}, {150, 150, 0}} {
		require.Equal(t, f.region, found(c, f.from, f.to), f)
	}
	require.Equal(t, regcache.Stats{Hits: 5, Misses: 6, Bytes: 200, Regions: 2}, c.Stats())
}

// Buffers that overlap become one region, and what it replaces ends when it is not used any more.
func TestMerge(t *testing.T) {
	c := regcache.New[int](plenty)
	first := c.Add(100, 200, 1)
	add(c, 300, 400, 2)
	from, to := c.Cover(150, 350)
	require.Equal(t, []uint64{100, 400}, []uint64{from, to})
	add(c, from, to, 3)
	require.Equal(t, 3, found(c, 120, 390))
	require.Equal(t, []int{2}, ended(c))
	c.Release(first)
	require.Equal(t, []int{1}, ended(c))
	from, to = c.Cover(400, 500)
	require.Equal(t, []uint64{400, 500}, []uint64{from, to}, "what is beside it is another")
}

// What is left of a region when the program has given a part of its memory back stays known.
func TestSplit(t *testing.T) {
	c := regcache.New[int](plenty)
	add(c, 100, 400, 1)
	c.Invalidate(200, 300)
	require.Equal(t, 1, found(c, 100, 200))
	require.Equal(t, 1, found(c, 300, 400))
	require.Zero(t, found(c, 199, 201))
	require.Empty(t, ended(c))
	add(c, 200, 300, 2)
	c.Invalidate(50, 250)
	require.Equal(t, 2, found(c, 250, 300))
	require.Equal(t, 1, found(c, 300, 400))
	c.Invalidate(0, 1000)
	require.ElementsMatch(t, []int{1, 2}, ended(c))
	require.Equal(t, uint64(2), c.Stats().Invalidations)
	require.Zero(t, c.Stats().Regions)
	require.Zero(t, c.Stats().Bytes)
}

// The least recently used go first, but not those that are in use.
func TestEviction(t *testing.T) {
	c := regcache.New[int](regcache.Limits{Bytes: 300, Regions: 10})
	for i := range 3 {
		add(c, uint64(i)*100, uint64(i)*100+100, i+1)
	}
	require.Equal(t, 1, found(c, 0, 10))
	add(c, 1000, 1100, 4)
	require.Equal(t, []int{2}, ended(c))
	used := c.Find(200, 300)
	add(c, 2000, 2100, 5)
	require.Equal(t, []int{1}, ended(c))
	big := c.Add(3000, 3300, 6)
	require.ElementsMatch(t, []int{4, 5}, ended(c))
	c.Release(big)
	require.Equal(t, []int{6}, ended(c), "the other is still in use")
	c.Release(used)
	require.Empty(t, ended(c), "it is within the limits")
	require.Equal(t, uint64(5), c.Stats().Evictions)
}

// A cache without capacity has regions only while they are in use.
func TestNoCapacity(t *testing.T) {
	for _, limits := range []regcache.Limits{{}, {Bytes: 1 << 20}, {Regions: 10}} {
		c := regcache.New[int](limits)
		e := c.Add(0, 100, 1)
		require.Equal(t, 1, found(c, 0, 100))
		require.Empty(t, ended(c))
		c.Release(e)
		require.Equal(t, []int{1}, ended(c))
	}
}

// Who knows the entry needs no search, as long as it has all that it had.
func TestAgain(t *testing.T) {
	c := regcache.New[int](plenty)
	e := c.Add(0, 100, 1)
	c.Release(e)
	require.True(t, c.Again(e, 10, 100))
	require.False(t, c.Again(e, 10, 101))
	c.Release(e)
	add(c, 50, 60, 2)
	require.False(t, c.Again(e, 0, 10), "a part of it belongs to another")
	e = c.Add(200, 300, 3)
	c.Invalidate(200, 210)
	require.False(t, c.Again(e, 200, 300))
	c.Release(e)
	e = c.Find(50, 60)
	c.Drop(e)
	c.Drop(e)
	require.False(t, c.Again(e, 50, 60))
	require.Empty(t, ended(c))
	c.Release(e)
	require.Equal(t, []int{2}, ended(c))
	require.Equal(t, uint64(1), c.Stats().Invalidations)
}

// Whatever is done, the cache finds what one finds that knows of each address whose it is, each
// region ends once, and only when it is neither known nor in use.
func TestCacheAgainstModel(t *testing.T) {
	for seed := range testsize.Samples(t, 200) {
		playCache(t, rand.New(rand.NewPCG(seed, 7)), 400)
	}
}

func playCache(t *testing.T, r *rand.Rand, steps int) {
	const space = 64
	limits := regcache.Limits{Bytes: r.Uint64N(200), Regions: r.IntN(12)}
	c := regcache.New[int](limits)
	var owner [space]int
	var held []*regcache.Entry[int]
	over, regions := make(map[int]bool), 0
	extent := func() (uint64, uint64) {
		a, b := r.Uint64N(space), r.Uint64N(space)
		return min(a, b), max(a, b) + 1
	}
	// collect notes what has ended. Evictions take all of a region from the model.
	collect := func() {
		for _, region := range ended(c) {
			require.False(t, over[region], "region %d ended twice", region)
			over[region] = true
			for _, e := range held {
				require.NotEqual(t, region, e.Region, "it is in use")
			}
			for a := range owner {
				if owner[a] == region {
					owner[a] = 0
				}
			}
		}
	}
	for range steps {
		switch from, to := extent(); r.IntN(6) {
		case 0:
			regions++
			held = append(held, c.Add(from, to, regions))
			for a := from; a < to; a++ {
				owner[a] = regions
			}
		case 1:
			c.Invalidate(from, to)
			clear(owner[from:to])
		case 2, 3:
			if len(held) > 0 {
				i := r.IntN(len(held))
				c.Release(held[i])
				held = append(held[:i], held[i+1:]...)
			}
		case 4:
			if len(held) > 0 {
				e := held[r.IntN(len(held))]
				c.Drop(e)
				for a := range owner {
					if owner[a] == e.Region {
						owner[a] = 0
					}
				}
			}
		default:
			want := owner[from]
			for a := from; a < to; a++ {
				if owner[a] != want {
					want = 0
				}
			}
			e := c.Find(from, to)
			if e != nil {
				require.Equal(t, want, e.Region)
				held = append(held, e)
			} else {
				require.Zero(t, want)
			}
		}
		collect()
		kept := make(map[int]bool)
		for _, region := range owner {
			if region != 0 {
				kept[region] = true
			}
		}
		require.Equal(t, len(kept), c.Stats().Regions)
	}
	for _, e := range held {
		c.Release(e)
	}
	held = nil
	collect()
	s := c.Stats()
	require.True(t, s.Bytes <= limits.Bytes && s.Regions <= limits.Regions, "%+v, %+v", s, limits)
	c.Invalidate(0, space)
	collect()
	require.Len(t, over, regions)
}

func FuzzCache(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) { playCache(t, rand.New(rand.NewPCG(a, b)), 100) })
}

// What is dead is pruned where it overlaps an extent, and all ends when it is cleared.
func TestPruneAndClear(t *testing.T) {
	c := regcache.New[int](regcache.Limits{Bytes: 1 << 30, Regions: 100})
	for i := range 4 {
		from := uint64(1000 * (i + 1))
		c.Release(c.Add(from, from+500, i))
	}
	require.False(t, c.AnyEnded())
	c.Prune(1400, 3001, func(region int) bool { return region%2 == 1 })
	require.True(t, c.AnyEnded())
	var ended []int
	all := func() {
		for region, some := c.Ended(); some; region, some = c.Ended() {
			ended = append(ended, region)
		}
	}
	all()
	require.ElementsMatch(t, []int{0, 2}, ended)
	require.EqualValues(t, 2, c.Stats().Invalidations)
	c.Clear()
	all()
	require.ElementsMatch(t, []int{0, 1, 2, 3}, ended)
	require.Nil(t, c.Find(2000, 2001))
	require.Zero(t, c.Stats().Regions)
}
