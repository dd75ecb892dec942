package globalarray_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/internal/testsize"
)

// partition assigns the indices one by one.
func partition(length, ranks, block int) (parts [][]int) {
	parts = make([][]int, ranks)
	for i := range length {
		var rank int
		if block > 0 {
			rank = i / block % ranks
		} else {
			for n := i; ; rank++ {
				has := length / ranks
				if rank < length%ranks {
					has++
				}
				if n < has {
					break
				}
				n -= has
			}
		}
		parts[rank] = append(parts[rank], i)
	}
	return parts
}

func TestMap(t *testing.T) {
	for _, ranks := range []int{1, 2, 3, 5, 8} {
		for _, length := range []int{0, 1, 2, 7, 8, 23, 64, 100} {
			for _, block := range []int{0, 1, 2, 5, 16, 200} {
				d := globalarray.Blocks()
				if block > 0 {
					d = globalarray.Cyclic(block)
				}
				m, err := globalarray.NewMap(length, ranks, d)
				require.NoError(t, err)
				require.Equal(t, length, m.Len())
				for rank, part := range partition(length, ranks, block) {
					require.Equal(t, len(part), m.Count(rank), "%d elements on %d ranks, %v: rank %d", length, ranks, d, rank)
					for displacement, i := range part {
						gotRank, got := m.Where(i)
						require.Equal(t, []int{rank, displacement}, []int{gotRank, got}, "%d elements on %d ranks, %v: element %d", length, ranks, d, i)
						require.Equal(t, i, m.Index(rank, displacement))
						run := 1
						for displacement+run < len(part) && part[displacement+run] == i+run {
							run++
						}
						require.Equal(t, run, m.Run(i), "%d elements on %d ranks, %v: run from %d", length, ranks, d, i)
					}
				}
			}
		}
	}
}

func TestMapArguments(t *testing.T) {
	for _, c := range []struct {
		length, ranks, block int
		want                 string
	}{
		{-1, 2, 0, "globalarray: invalid argument: -1 elements; allowed are 0 to "},
		{math.MaxInt, 2, 0, "elements; allowed are 0 to "},
		{1, 0, 0, "globalarray: invalid argument: 0 ranks; allowed is 1 or more"},
		{1, 2, 0, "globalarray: invalid argument: blocks of 0 elements; allowed are 1 to "},
		{1, 2, -3, "globalarray: invalid argument: blocks of -3 elements; allowed are 1 to "},
		{1, 2, math.MaxInt, "elements; allowed are 1 to "},
	} {
		_, err := globalarray.NewMap(c.length, c.ranks, globalarray.Cyclic(c.block))
		require.ErrorIs(t, err, globalarray.ErrArgument)
		require.ErrorContains(t, err, c.want)
	}
}

// The places of large indices follow from division, whether a divisor multiplies or divides.
func TestLargeMap(t *testing.T) {
	random := testsize.Random(t, 2)
	for _, length := range []int{1<<31 - 1, 1 << 32, 1<<32 + 12345, 1 << 40, math.MaxInt / 4} {
		for _, ranks := range []int{1, 2, 3, 1000, 4096} {
			for _, block := range []int{0, 1, 3, 1 << 20, 1<<33 + 7} {
				d := globalarray.Blocks()
				if block > 0 {
					d = globalarray.Cyclic(block)
				}
				m, err := globalarray.NewMap(length, ranks, d)
				require.NoError(t, err)
				indices := []int{0, 1, length - 1, length / ranks, length/ranks + 1, length%ranks*(length/ranks+1) - 1}
				for range testsize.N(50) {
					indices = append(indices, random.IntN(length))
				}
				for _, i := range indices {
					if i < 0 || i >= length {
						continue
					}
					wantRank, want := i/max(block, 1)%ranks, i/max(block, 1)/ranks*block+i%max(block, 1)
					if block == 0 {
						wantRank, want = i/(length/ranks+1), i%(length/ranks+1)
						if longer := length % ranks * (length/ranks + 1); i >= longer {
							wantRank, want = length%ranks+(i-longer)/(length/ranks), (i-longer)%(length/ranks)
						}
					}
					rank, displacement := m.Where(i)
					require.Equal(t, []int{wantRank, want}, []int{rank, displacement}, "element %d of %d on %d ranks, %v", i, length, ranks, d)
					require.Equal(t, i, m.Index(rank, displacement))
				}
			}
		}
	}
}
