package transfer

import "math"

// Blocks cut what goes in messages, which the target combines with what it has while others come: the
// two-sided form of paper C, whose receiver copies blocks as they arrive. What is seen beside the
// wire is the copy of the first block at the origin, and what the target does with the last. So
// they grow from a short one as pieces of a superpipeline do, and shrink to a short one. Where
// copying is slower than the wire it is what blocks wait for at both ends, and they have one length.
// It is a value of a few words.
type Blocks struct {
	left, longest int
	first, next   float64
	growth        float64
}

// blockAlign is what all blocks but the last are a multiple of, in bytes: none of them has a part of an
// element.
const blockAlign = 64

// LongBlocks cuts so many bytes into blocks that are all as long as a message. That has room for longest
// bytes, of which a multiple of 64 is used, 64 at least. Only the last may be shorter. Less than no bytes
// are taken for none.
func LongBlocks(bytes, longest int) Blocks {
	b := Blocks{left: max(bytes, 0), longest: max(longest&^(blockAlign-1), blockAlign), growth: 1}
	b.first = float64(b.longest)
	b.next = b.first
	return b
}

// Blocks is LongBlocks but for blocks that are shorter where that takes less time on the card. Where it
// is not known what copies and the wire take all are long.
func (m *Model) Blocks(bytes, longest int) Blocks {
	b := LongBlocks(bytes, longest)
	// each is what a block takes a processor beside its bytes.
	each := max(m.gap, m.post+m.copy+m.serve)
	switch length := float64(b.left); {
	case !m.known || b.left == 0:
	case m.growth > flat:
		b.first = firstOf(length, m.growth, each/m.copying/math.Log(m.growth))
		b.growth = m.growth
	default:
		count := max(math.Round(math.Sqrt(times(length, m.copying+m.wire)/each)), 1)
		b.first = math.Ceil(length/count/blockAlign) * blockAlign
	}
	b.first = min(max(b.first, shortest), float64(b.longest))
	b.next = b.first
	return b
}

// Next is the length of the next block, 0 behind the last.
func (b *Blocks) Next() int {
	bytes := min(b.next, float64(b.longest))
	b.next = times(bytes, b.growth)
	if b.growth > 1 {
		// Those that are left are at least as long as what shrinks by as much to the first.
		bytes = max(min(bytes, times(float64(b.left), 1-1/b.growth)), b.first)
	}
	n := min((int(bytes)+blockAlign-1)&^(blockAlign-1), b.longest)
	if b.left-n < shortest/2 {
		n = b.left
	}
	n = min(n, b.left, b.longest)
	b.left -= n
	return n
}
