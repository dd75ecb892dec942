package transfer

import "math"

// A Piece is a part of an operation.
type Piece struct {
	Bytes int
	// Copied reports that the piece goes through registered memory. Otherwise its own memory is registered.
	Copied bool
}

// Pieces are the pieces of an operation, from its first byte to its last. Pieces is a value of a few words.
type Pieces struct {
	// copied and registered are the remaining bytes of both kinds. Copied pieces come first.
	copied, registered int

	// While flat is above 0 the next copied piece has the length longest. After that it has the length next, which
	// changes by factor. exact is the unrounded position where it begins, done the position where the previous piece
	// ended.
	next, factor, longest, exact float64
	flat, count                  int
	done                         int
	stage, line                  int

	// piece is the longest registered piece, without the rest of a page. aligned is set if pieces end at multiples of
	// piece, and not at a page boundary.
	piece   int
	aligned bool
}

// Cut returns the pieces of an operation of bytes by protocol p. write is true for a put and false for a get.
func (m *Model) Cut(p Protocol, write bool, bytes int) Pieces {
	bytes = max(bytes, 0)
	registered, piece := m.registered(p, bytes)
	c := Pieces{copied: bytes - registered, registered: registered, piece: piece, aligned: p == CachingPipeline, stage: m.stage, line: m.line}
	if c.copied == 0 {
		return c
	}
	s := m.copied(p, float64(c.copied))
	if registered > 0 {
		s = m.heading(float64(c.copied), write)
	}
	c.count, c.longest = s.count(), s.longest
	c.next, c.factor = s.first, s.growth
	if !write {
		c.next, c.factor, c.flat = s.last(), 1/s.growth, s.flat
	}
	return c
}

// Next returns the next piece, which begins at address of the origin's memory. It returns false after the last piece.
func (p *Pieces) Next(address uint64) (Piece, bool) {
	switch {
	case p.copied > 0:
		return Piece{p.nextCopied(address), true}, true
	case p.registered > 0:
		bytes := p.nextRegistered(address)
		p.registered -= bytes
		return Piece{bytes, false}, true
	}
	return Piece{}, false
}

func (p *Pieces) nextCopied(address uint64) int {
	bytes := p.copied
	if p.count--; p.count > 0 {
		if p.flat > 0 {
			p.flat--
			p.exact += p.longest
		} else {
			p.exact += min(p.next, p.longest)
			p.next = times(p.next, p.factor)
		}
		end := int(min(math.Ceil(p.exact), math.MaxInt/2))
		bytes = max((end+p.line-1)&^(p.line-1)-p.done, 1)
	}
	bytes = min(bytes, p.copied, p.stage)
	p.copied -= bytes
	p.done += bytes
	if p.copied == 0 && p.registered > 0 && p.aligned {
		// If the first piece to be kept would be short, it is copied too.
		more := int(-(address + uint64(bytes)) & uint64(p.piece-1))
		if more <= bytes/4 && bytes+more <= p.stage && more <= p.registered {
			bytes += more
			p.registered -= more
		}
	}
	return bytes
}

func (p *Pieces) nextRegistered(address uint64) int {
	if p.aligned {
		return min(p.registered, p.piece-int(address&uint64(p.piece-1)))
	}
	// All pieces have one length, except for the rest of the last page.
	count := (p.registered-1)/p.piece + 1
	if count == 1 {
		return p.registered
	}
	bytes := (p.registered-1)/count + 1
	return bytes + int(-(address+uint64(bytes))%page)
}
