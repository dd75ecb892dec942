package regcache_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/regcache"
)

// usage is a table of which only the counts are looked at.
type usage struct{ regcache.Usage[int] }

func (u *usage) use(address uint64, size, threshold int) bool {
	_, frequent := u.Use(address, size, threshold, threshold)
	return frequent
}

// A buffer is frequently used from its threshold on, and another of the same address and another
// class of sizes is another.
func TestUse(t *testing.T) {
	var u usage
	for i := range 10 {
		require.Equal(t, i >= 4, u.use(4096, 1000, 5), i)
	}
	require.False(t, u.use(4096, 5000, 2))
	require.False(t, u.use(8192, 1000, 2))
	require.True(t, u.use(4096, 600, 2), "sizes of 513 to 1024 are one class")
	require.False(t, u.use(12288, 1000, 0), "a threshold of 0 is none")
	require.Equal(t, 4, u.Len())
	require.Equal(t, 1, u.Frequent())
}

// The table counts as a map does, while it grows.
func TestUseCounts(t *testing.T) {
	var u usage
	r := rand.New(rand.NewPCG(1, 2))
	uses := make(map[uint64]int)
	for range 1 << 18 {
		address := r.Uint64N(1<<15) * 64
		uses[address]++
		if frequent := u.use(address, 128, 6); frequent != (uses[address] >= 6) {
			t.Fatalf("frequent is %v after %d uses", frequent, uses[address])
		}
	}
	require.Equal(t, len(uses), u.Len())
}

// Where few buffers are used again the table stops to grow; when it has rejected long enough it
// forgets, and learns of others.
func TestUseStopsGrowing(t *testing.T) {
	var u usage
	next := uint64(0)
	once := func(n int) {
		for range n {
			if u.use(next, 128, 100) {
				t.Fatalf("frequent at the first use, of %d", next/128)
			}
			next += 128
		}
	}
	const half = 1 << 19
	once(half)
	require.Equal(t, half, u.Len())
	once(4 * half)
	require.Equal(t, half, u.Len(), "it rejects")
	for i := range 99 {
		require.Equal(t, i == 98, u.use(0, 128, 100), "what it has it counts")
	}
	require.Equal(t, 1, u.Frequent())
	once(1)
	require.Equal(t, 2, u.Len(), "it has forgotten what is not frequent")
	require.True(t, u.use(0, 128, 100))
	for i := range 100 {
		require.Equal(t, i == 99, u.use(1<<40, 128, 100))
	}
}

// Buffers that are frequently used have the table grow beyond that, but not without end.
func TestUseGrowsForFrequent(t *testing.T) {
	var u usage
	const most = 1 << 20
	for i := range uint64(most) {
		if !u.use(i*128, 128, 1) {
			t.Fatalf("not frequent at once, after %d", i)
		}
	}
	require.Equal(t, most, u.Len())
	if testsize.Size() <= 1 {
		require.False(t, u.use(most*128, 128, 1), "the table has grown")
		return
	}
	// When it forgets is the same as in TestUseStopsGrowing.
	for i := range uint64(4 * most) {
		if u.use((i+most)*128, 128, 1) {
			t.Fatalf("the table has grown, after %d more", i)
		}
	}
	require.True(t, u.use(1<<50, 128, 1))
	require.Equal(t, 1, u.Len())
}

func TestUseAllocatesNothing(t *testing.T) {
	var u usage
	u.use(1, 128, 2)
	require.Zero(t, testing.AllocsPerRun(1000, func() { u.use(1, 128, 2) }))
}

func FuzzUse(f *testing.F) {
	f.Add([]byte{1, 2, 3, 1, 1})
	f.Fuzz(func(t *testing.T, addresses []byte) {
		var u usage
		uses := make(map[byte]int)
		for _, a := range addresses {
			uses[a]++
			require.Equal(t, uses[a] >= 3, u.use(uint64(a)<<3, 200, 3))
		}
		require.Equal(t, len(uses), u.Len())
	})
}

// What is noted goes with a buffer while the table grows, and goes with it when it is forgotten.
func TestUseNotes(t *testing.T) {
	var u regcache.Usage[uint64]
	for round := range 3 {
		for a := range uint64(1 << 10) {
			b, frequent := u.Use(a*128, 128, 2, 2)
			require.Equal(t, round > 0, frequent)
			if round == 0 {
				require.Zero(t, b.Value)
				b.Value = a + 1
			}
			require.Equal(t, a+1, b.Value)
		}
	}
}
