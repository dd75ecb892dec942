package globalarray

import (
	"fmt"
	"math"
)

// A Distribution says how indices are dealt to ranks.
type Distribution struct {
	// turns: block is how many go to a rank before it is the next one's turn. Else it gets all at once.
	turns bool
	block int
}

// Blocks gives each rank one piece, the lower ranks one element more where they do not go up evenly.
func Blocks() Distribution { return Distribution{} }

// Cyclic gives the ranks pieces of so many elements in turns.
func Cyclic(block int) Distribution { return Distribution{true, block} }

func (d Distribution) String() string {
	if !d.turns {
		return "Blocks()"
	}
	return fmt.Sprintf("Cyclic(%d)", d.block)
}

// A Map says where the elements of an array are: element i, at a displacement in the part of a rank.
type Map struct {
	length, ranks int
	// block is as of Distribution, 0 without turns, more how many ranks have one element more than Blocks gives all, and
	// even how many these are.
	block, more, even int
}

// NewMap is the map of length elements on so many ranks.
func NewMap(length, ranks int, d Distribution) (Map, error) {
	switch {
	case length < 0 || length > math.MaxInt/2:
		return Map{}, fmt.Errorf("globalarray: %w: %d elements; allowed are 0 to %d", ErrArgument, length, math.MaxInt/2)
	case ranks < 1:
		return Map{}, fmt.Errorf("globalarray: %w: %d ranks; allowed is 1 or more", ErrArgument, ranks)
	case d.turns && (d.block < 1 || d.block > math.MaxInt/2/ranks):
		return Map{}, fmt.Errorf("globalarray: %w: blocks of %d elements; allowed are 1 to %d", ErrArgument, d.block, math.MaxInt/2/ranks)
	}
	return Map{length: length, ranks: ranks, block: d.block, more: length % ranks, even: length / ranks}, nil
}

// Len is how many elements the array has.
func (m *Map) Len() int { return m.length }

// Where is the place of an element. i is from 0 to Len()-1.
func (m *Map) Where(i int) (rank, displacement int) {
	if m.block > 0 {
		turn, within := i/m.block, i%m.block
		return turn % m.ranks, turn/m.ranks*m.block + within
	}
	// The first have one more.
	if longer := m.more * (m.even + 1); i >= longer {
		i -= longer
		return m.more + i/m.even, i % m.even
	}
	return i / (m.even + 1), i % (m.even + 1)
}

// Index is the element at a place, the other way round.
func (m *Map) Index(rank, displacement int) int {
	if m.block > 0 {
		return (displacement/m.block*m.ranks+rank)*m.block + displacement%m.block
	}
	return rank*m.even + min(rank, m.more) + displacement
}

// Count is how many elements a rank has.
func (m *Map) Count(rank int) int {
	if m.block > 0 {
		turn := m.block * m.ranks
		return m.length/turn*m.block + min(max(m.length%turn-rank*m.block, 0), m.block)
	}
	if rank < m.more {
		return m.even + 1
	}
	return m.even
}

// Run is how many elements from i on, which is one of the array's, are side by side at one rank.
func (m *Map) Run(i int) int {
	if m.block > 0 {
		if m.ranks == 1 {
			return m.length - i
		}
		return min(m.block-i%m.block, m.length-i)
	}
	rank, displacement := m.Where(i)
	return m.Count(rank) - displacement
}
