package registration

import (
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// A Plan is how one buffer gets to a card that has no Key for it: from a kept region that has all of it ([Plan.Whole]), or in
// pieces ([Plan.Next]). It is a value for one goroutine, and allocates nothing.
type Plan struct {
	cache    *cache
	protocol transfer.Protocol
	state    planState
	write    bool
	pieces   transfer.Pieces
	whole    []byte
	rest     []byte
	// hold is of the kept region that has all of the buffer, until Whole.
	hold Hold
}

// A planState is how the rest of the buffer gets to the card. A Plan begins in the first state that suits, and goes on to a later
// one when a registration is refused.
type planState uint8

const (
	// planKept registers pieces and keeps them.
	planKept planState = iota
	// planOnce registers pieces for this buffer.
	planOnce
	// planCopied copies pieces.
	planCopied
)

// A Piece is a part of a buffer, in the order of their addresses.
type Piece struct {
	Memory []byte
	// Copied is set if the piece is copied through a buffer of [Card.CopyBuffer]. Otherwise the request uses Hold.
	Copied bool
	// AtOnce is set if the request is posted and signalled at once: other pieces follow, or the Plan keeps what it registers.
	AtOnce bool
	Hold   Hold
}

// MaxDepth is the greatest value of Plan.Depth.
const MaxDepth = 4

// Plan chooses how memory gets to the card, to be written to a peer or read into. It counts the operation, and no use.
func (c *Card) Plan(memory []byte, write bool) Plan {
	k := c.caching()
	p := Plan{cache: k, write: write, whole: memory, rest: memory}
	if len(memory) >= regcache.Floor {
		switch r, decision := k.peek(memory); {
		case r != nil:
			p.hold, p.rest = Hold{kept: r, memory: memory}, nil
			c.counts.add(transfer.Cache, 1, len(memory))
			return p
		case decision == regcache.Register:
			p.keep()
			return p
		}
	}
	p.once()
	return p
}

// Whole returns the hold of the kept region that has all of the buffer, once. Then there are no pieces. It must be called: from Plan
// on the region is in use, which only the caller's Release ends.
func (p *Plan) Whole() (hold Hold, ok bool) {
	hold, p.hold = p.hold, Hold{}
	return hold, hold.Holds()
}

// More reports whether there is another piece.
func (p *Plan) More() bool { return len(p.rest) > 0 }

// Protocol returns the protocol by which the next piece is counted.
func (p *Plan) Protocol() transfer.Protocol { return p.protocol }

// Depth returns how many pieces that are registered for this buffer alone may be in use at a time. Before Next the caller has
// released the others. It is 0 as long as no piece is registered so. Next may change it.
func (p *Plan) Depth() int {
	if p.state != planOnce {
		return 0
	}
	return min(p.cache.card.model.Depth(), MaxDepth)
}

// keep begins to register the rest and keep it: as a whole, or in pieces if that takes less time.
func (p *Plan) keep() {
	c := p.cache.card
	m, allowed, n := c.model, c.registry.config.Protocols, len(p.rest)
	p.state, p.protocol = planKept, transfer.Cache
	if allowed.Has(transfer.CachingPipeline) &&
		(!allowed.Has(transfer.Cache) || n > m.Piece() && m.Time(transfer.CachingPipeline, p.write, n) < m.Time(transfer.Cache, p.write, n)) {
		p.protocol = transfer.CachingPipeline
	}
	p.pieces = m.Cut(p.protocol, p.write, n)
	c.counts.add(p.protocol, 1, 0)
}

// once begins to move the rest without keeping it.
func (p *Plan) once() {
	c := p.cache.card
	chooser := p.cache.gets
	if p.write {
		chooser = p.cache.puts
	}
	p.state, p.protocol = planCopied, chooser.Best(len(p.rest))
	if p.protocol == transfer.Register || p.protocol == transfer.Pipeline {
		p.state = planOnce
	}
	p.pieces = c.model.Cut(p.protocol, p.write, len(p.rest))
	c.counts.add(p.protocol, 1, len(p.rest))
}

// Next returns the next piece. [Plan.More] must have returned true. The caller releases the piece's Hold. Next waits for nothing, but
// may register memory, which takes a while.
func (p *Plan) Next() Piece {
	if p.state == planKept {
		if piece, ok := p.nextKept(); ok {
			p.cache.card.counts.add(p.protocol, 0, len(piece.Memory))
			return piece
		}
		p.cache.reject(p.whole)
		p.once()
	}
	if p.state == planOnce {
		if piece, ok := p.nextOnce(); ok {
			return piece
		}
		p.state, p.pieces = planCopied, p.cache.card.model.Cut(transfer.Copy, p.write, len(p.rest))
	}
	next, _ := p.pieces.Next(0)
	return p.take(next.Bytes, Hold{})
}

// nextKept returns a piece of a kept region. It copies the head of a pipeline while the first of the others is registered, unless
// that is kept already: then the head is registered, too, if the whole buffer may be. ok is false if the piece cannot be kept.
func (p *Plan) nextKept() (piece Piece, ok bool) {
	k := p.cache
	next, _ := p.pieces.Next(k.lockedAddress(p.rest))
	if next.Copied && !(k.card.registry.config.Protocols.Has(transfer.Cache) && k.keeps(p.rest[next.Bytes:])) {
		return p.take(next.Bytes, Hold{}), true
	}
	memory := p.rest[:next.Bytes:next.Bytes]
	r := k.find(memory)
	if r == nil {
		if r = k.keep(memory); r == nil {
			return piece, false
		}
	}
	return p.take(next.Bytes, Hold{kept: r, memory: memory}), true
}

// nextOnce returns a piece of a region for this buffer alone. ok is false if the device refuses it.
func (p *Plan) nextOnce() (piece Piece, ok bool) {
	c := p.cache.card
	next, _ := p.pieces.Next(p.cache.lockedAddress(p.rest))
	if next.Copied {
		return p.take(next.Bytes, Hold{}), true
	}
	// The program may not be allowed to write to memory that is only sent from.
	var access verbs.Access
	if !p.write {
		access = verbs.LocalWrite
	}
	region, err := c.device.RegisterMemory(p.rest[:next.Bytes:next.Bytes], access)
	if err != nil {
		c.refuse(err)
		return piece, false
	}
	return p.take(next.Bytes, Hold{once: region}), true
}

// take takes a piece off the rest. It is copied if nothing holds it.
func (p *Plan) take(bytes int, hold Hold) Piece {
	piece := Piece{Memory: p.rest[:bytes:bytes], Copied: !hold.Holds(), Hold: hold}
	p.rest = p.rest[bytes:]
	piece.AtOnce = p.state == planKept || len(p.rest) > 0
	return piece
}
