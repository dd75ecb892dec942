package globalarray

import (
	"fmt"
	"math"
	"math/bits"
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
	// even how many these are. longer is how many elements those have together that have more.
	block, more, even, longer int
	// byBlock and byRanks divide by what the names say, byMore and byEven by the elements of a rank.
	byBlock, byRanks, byMore, byEven divisor
}

// A divisor divides by a number by way of a multiplication, which takes a third of the time: every operation on an element
// does so once or twice. The quotient is exact for numbers n if n times the divisor is below 2^64.
type divisor struct{ inverse, number uint64 }

// divisorOf is that for numbers up to most. Where they are too large it divides.
func divisorOf(number, most int) divisor {
	d := divisor{number: uint64(number)}
	if number > 1 && bits.Len(uint(number))+bits.Len(uint(most)) <= 64 {
		d.inverse = math.MaxUint64/d.number + 1
	}
	return d
}

func (d *divisor) divide(n int) (quotient, rest int) {
	q, _ := bits.Mul64(d.inverse, uint64(n))
	if d.inverse == 0 {
		q = uint64(n) / d.number
	}
	return int(q), int(uint64(n) - q*d.number)
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
	m := Map{length: length, ranks: ranks, block: d.block, more: length % ranks, even: length / ranks}
	m.longer = m.more * (m.even + 1)
	m.byBlock, m.byRanks = divisorOf(m.block, length), divisorOf(ranks, length)
	m.byMore, m.byEven = divisorOf(m.even+1, length), divisorOf(m.even, length)
	return m, nil
}

// Len is how many elements the array has.
func (m *Map) Len() int { return m.length }

// Where is the place of an element. i is from 0 to Len()-1.
func (m *Map) Where(i int) (rank, displacement int) {
	if m.block > 0 {
		turn, within := m.byBlock.divide(i)
		turn, rank = m.byRanks.divide(turn)
		return rank, turn*m.block + within
	}
	// The first have one more.
	if i >= m.longer {
		rank, displacement = m.byEven.divide(i - m.longer)
		return m.more + rank, displacement
	}
	return m.byMore.divide(i)
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
