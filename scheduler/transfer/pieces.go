package transfer

import "math"

// A Piece of an operation.
type Piece struct {
	Bytes int
	// Copied tells that the piece goes through registered memory. Else its own is registered.
	Copied bool
}

// Pieces cut an operation, from its first byte to its last. It is a value of a few words.
type Pieces struct {
	// copied and registered are how many bytes are left of both kinds. Those that are copied come
	// first.
	copied, registered int

	// The next copied piece has the length longest while flat is above 0, then next, which
	// changes by factor. exact is where it begins, done where the one before has ended.
	next, factor, longest, exact float64
	flat, count                  int
	done                         int
	stage, line                  int

	// piece is the longest registered piece, but for the rest of a page. aligned tells that they end at multiples of it,
	// instead of with a page.
	piece   int
	aligned bool
}

// Cut cuts an operation.
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

// Next is the next piece, which begins at an address of the origin's memory; false behind the last.
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
		// Where the first piece that is kept would be short, it is copied too.
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
	// Of one length, but for the rest of the last page.
	count := (p.registered-1)/p.piece + 1
	if count == 1 {
		return p.registered
	}
	bytes := (p.registered-1)/count + 1
	return bytes + int(-(address+uint64(bytes))%page)
}
