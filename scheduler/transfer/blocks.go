package transfer

import "math"

// Blocks cut data that goes in messages, which the target combines with its memory while later ones arrive. This is the
// two-sided form of paper C, whose receiver copies blocks as they arrive. Beside the wire, the copy of the first block
// at the origin and the target's work on the last block take time. So blocks grow from a short one, as in a
// superpipeline, and shrink to a short one. Where copying is slower than the wire, blocks wait for copies at both ends,
// and have one length. Blocks is a value of a few words.
type Blocks struct {
	left, longest int
	first, next   float64
	growth        float64
}

// blockAlign is the alignment of all blocks but the last, in bytes. So no block has a part of an element.
const blockAlign = 64

// LongBlocks cuts bytes into blocks that all fill a message, except the last. A message has room for longest bytes,
// which is rounded down to a multiple of 64, and is at least 64. A negative number of bytes counts as 0.
func LongBlocks(bytes, longest int) Blocks {
	b := Blocks{left: max(bytes, 0), longest: max(longest&^(blockAlign-1), blockAlign), growth: 1}
	b.first = float64(b.longest)
	b.next = b.first
	return b
}

// Blocks is LongBlocks with shorter blocks where that takes less time on the card. If the costs of copying and of the
// wire are unknown, all blocks are long.
func (m *Model) Blocks(bytes, longest int) Blocks {
	b := LongBlocks(bytes, longest)
	// each is the processor time of a block beside its bytes.
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

// Next returns the length of the next block, and 0 after the last.
func (b *Blocks) Next() int {
	bytes := min(b.next, float64(b.longest))
	b.next = times(bytes, b.growth)
	if b.growth > 1 {
		// The remaining blocks are at least as long as a sequence that shrinks by the same factor to the first length.
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
