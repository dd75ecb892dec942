package epoch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// A Group is an immutable set of ranks, for Start and Post. The zero value is empty.
type Group struct{ ranks []int }

// NewGroup returns a group of ranks of a job with size ranks. It returns an ErrGroup for a rank that the job does not
// have, or that is named twice.
func NewGroup(size int, ranks ...int) (Group, error) {
	sorted := slices.Sorted(slices.Values(ranks))
	for i, rank := range sorted {
		if rank < 0 || rank >= size {
			return Group{}, fmt.Errorf("epoch: %w: rank %d, %s", ErrGroup, rank, errtext.Allowed(size-1))
		}
		if i > 0 && sorted[i-1] == rank {
			return Group{}, fmt.Errorf("epoch: %w: rank %d twice, allowed is once", ErrGroup, rank)
		}
	}
	return Group{sorted}, nil
}

// Len returns the number of ranks.
func (g Group) Len() int { return len(g.ranks) }

// Rank returns the i-th rank, in ascending order.
func (g Group) Rank(i int) int { return g.ranks[i] }

// After returns the i-th rank after the given rank, cyclically: the first rank follows the last.
func (g Group) After(rank, i int) int {
	first, found := slices.BinarySearch(g.ranks, rank)
	if found {
		first++
	}
	return g.ranks[(first+i)%len(g.ranks)]
}

// Ranks returns the ranks in ascending order, in a slice that belongs to the caller.
func (g Group) Ranks() []int { return slices.Clone(g.ranks) }

// Contains reports whether rank is in the group.
func (g Group) Contains(rank int) bool {
	_, found := slices.BinarySearch(g.ranks, rank)
	return found
}

func (g Group) equal(h Group) bool { return slices.Equal(g.ranks, h.ranks) }

// String lists the ranks, or only the first ones if there are many.
func (g Group) String() string {
	var list listing
	for _, rank := range g.ranks {
		list.add(fmt.Sprint(rank))
	}
	return "[" + list.join(" ") + "]"
}

// within reports whether all ranks are ranks of a job with size ranks.
func (g Group) within(size int) bool { return len(g.ranks) == 0 || g.ranks[len(g.ranks)-1] < size }

// A listing is the beginning of a list in an error message.
type listing struct {
	first []string
	more  int
}

const maxListed = 8

func (l *listing) add(item string) {
	if len(l.first) == maxListed {
		l.more++
		return
	}
	l.first = append(l.first, item)
}

func (l *listing) join(separator string) string {
	if l.more == 0 {
		return strings.Join(l.first, separator)
	}
	return strings.Join(append(l.first, fmt.Sprintf("and %d more", l.more)), separator)
}
