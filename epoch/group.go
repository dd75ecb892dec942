package epoch

import (
	"fmt"
	"slices"
)

// A Group is a set of ranks, for Start and Post. The zero value is empty.
type Group struct{ ranks []int }

// NewGroup makes a group of ranks of a job of size. A rank that the job does not
// have, or that is named twice, is an ErrGroup.
func NewGroup(size int, ranks ...int) (Group, error) {
	sorted := slices.Sorted(slices.Values(ranks))
	for i, rank := range sorted {
		if rank < 0 || rank >= size {
			return Group{}, fmt.Errorf("epoch: %w: rank %d, allowed are 0 to %d", ErrGroup, rank, size-1)
		}
		if i > 0 && sorted[i-1] == rank {
			return Group{}, fmt.Errorf("epoch: %w: rank %d twice", ErrGroup, rank)
		}
	}
	return Group{sorted}, nil
}

// Len is the number of ranks.
func (g Group) Len() int { return len(g.ranks) }

// Rank is the i-th rank, in ascending order.
func (g Group) Rank(i int) int { return g.ranks[i] }

// Ranks are the ranks in ascending order; the slice is the caller's.
func (g Group) Ranks() []int { return slices.Clone(g.ranks) }

// Contains tells whether rank is of the group.
func (g Group) Contains(rank int) bool {
	_, found := slices.BinarySearch(g.ranks, rank)
	return found
}

// within tells whether all ranks are of a job of size.
func (g Group) within(size int) bool { return len(g.ranks) == 0 || g.ranks[len(g.ranks)-1] < size }
