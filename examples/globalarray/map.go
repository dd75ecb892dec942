package globalarray

import (
	"fmt"
	"math"
	"math/bits"
)

// A Distribution is the rule by which indices are assigned to ranks.
type Distribution struct {
	// cyclic is set if ranks get blocks of block elements in turns. Otherwise each rank gets one block.
	cyclic bool
	block  int
}

// Blocks gives each rank one contiguous block. If the lengths cannot be equal, the lower ranks have one element more.
func Blocks() Distribution { return Distribution{} }

// Cyclic gives blocks of block elements to the ranks in turns.
func Cyclic(block int) Distribution { return Distribution{true, block} }

func (d Distribution) String() string {
	if !d.cyclic {
		return "Blocks()"
	}
	return fmt.Sprintf("Cyclic(%d)", d.block)
}

// A Map computes the place of each element of an array: a rank, and a displacement in its part.
type Map struct {
	length, ranks int
	// block is that of Distribution, or 0 if it is not cyclic. more is the number of ranks that have one element more than
	// even, the number that Blocks gives every rank. longer is the number of elements of those ranks together.
	block, more, even, longer int
	// byBlock and byRanks divide by block and ranks. byMore and byEven divide by the number of elements of a longer
	// and of another rank.
	byBlock, byRanks, byMore, byEven divisor
}

// A divisor divides by a fixed number by a multiplication, which takes a third of the time of a division. Every operation on an
// element divides once or twice. The quotient of n is exact if n times the number is below 2^64.
type divisor struct{ inverse, number uint64 }

// divisorOf returns a divisor for dividends of at most most. If the numbers are too large for the multiplication, it
// divides.
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

// NewMap returns the map of length elements on ranks ranks. The error wraps ErrArgument.
func NewMap(length, ranks int, d Distribution) (Map, error) {
	switch {
	case length < 0 || length > math.MaxInt/2:
		return Map{}, fmt.Errorf("globalarray: %w: %d elements; allowed are 0 to %d", ErrArgument, length, math.MaxInt/2)
	case ranks < 1:
		return Map{}, fmt.Errorf("globalarray: %w: %d ranks; allowed is 1 or more", ErrArgument, ranks)
	case d.cyclic && (d.block < 1 || d.block > math.MaxInt/2/ranks):
		return Map{}, fmt.Errorf("globalarray: %w: blocks of %d elements; allowed are 1 to %d", ErrArgument, d.block, math.MaxInt/2/ranks)
	}
	m := Map{length: length, ranks: ranks, block: d.block, more: length % ranks, even: length / ranks}
	m.longer = m.more * (m.even + 1)
	m.byBlock, m.byRanks = divisorOf(m.block, length), divisorOf(ranks, length)
	m.byMore, m.byEven = divisorOf(m.even+1, length), divisorOf(m.even, length)
	return m, nil
}

// Len returns the number of elements of the array.
func (m *Map) Len() int { return m.length }

// Where returns the place of element i, which must be from 0 to Len()-1.
func (m *Map) Where(i int) (rank, displacement int) {
	if m.block > 0 {
		turn, within := m.byBlock.divide(i)
		turn, rank = m.byRanks.divide(turn)
		return rank, turn*m.block + within
	}
	// The first ranks have one element more.
	if i >= m.longer {
		rank, displacement = m.byEven.divide(i - m.longer)
		return m.more + rank, displacement
	}
	return m.byMore.divide(i)
}

// Index returns the index of the element at a place. It is the inverse of Where.
func (m *Map) Index(rank, displacement int) int {
	if m.block > 0 {
		return (displacement/m.block*m.ranks+rank)*m.block + displacement%m.block
	}
	return rank*m.even + min(rank, m.more) + displacement
}

// Count returns the number of elements of a rank.
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

// Run returns the number of elements that are contiguous at one rank from element i on. i must be from 0 to Len()-1.
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
