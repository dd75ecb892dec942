package epoch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// A Group is a set of ranks, for Start and Post. It does not change. The zero value
// is empty.
type Group struct{ ranks []int }

// NewGroup makes a group of ranks of a job of size. A rank that the job does not
// have, or that is named twice, is an ErrGroup.
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

// Len is the number of ranks.
func (g Group) Len() int { return len(g.ranks) }

// Rank is the i-th rank, in ascending order.
func (g Group) Rank(i int) int { return g.ranks[i] }

// After is the i-th rank behind one, and behind the last of all the first.
func (g Group) After(rank, i int) int {
	first, found := slices.BinarySearch(g.ranks, rank)
	if found {
		first++
	}
	return g.ranks[(first+i)%len(g.ranks)]
}

// Ranks are the ranks in ascending order; the slice is the caller's.
func (g Group) Ranks() []int { return slices.Clone(g.ranks) }

// Contains tells whether rank is of the group.
func (g Group) Contains(rank int) bool {
	_, found := slices.BinarySearch(g.ranks, rank)
	return found
}

// String lists the ranks, the first of them if there are many.
func (g Group) String() string {
	var list listing
	for _, rank := range g.ranks {
		list.add(fmt.Sprint(rank))
	}
	return "[" + list.join(" ") + "]"
}

// within tells whether all ranks are of a job of size.
func (g Group) within(size int) bool { return len(g.ranks) == 0 || g.ranks[len(g.ranks)-1] < size }

// A listing is the beginning of a list for a message.
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
