package hashtable

import "slices"

// These are the steps of clients that move keys, as in grow.go and move.go.

// growMoves names the function of grow.go that a client is in.
type growMoves uint8

const (
	movesNothing growMoves = iota
	// movesAnew is grow, after an operation found keys far from home or no slot.
	movesAnew
	// movesHelping is help.
	movesHelping
	// These are the stages of moveAll: it claims parts, moves all parts, and makes the next index current.
	movesClaiming
	movesAll
	movesTurning
)

func (m *growModel) move(s *growState, client int) {
	c := &s.clients[client]
	switch c.at {
	case atMoverCurrent:
		s.enter(client)
		c.view.current, c.at = s.view.current, atMoverNext
	case atMoverNext:
		c.view.next = s.view.next
		m.viewed(s, client)
	case atTakeBlock:
		m.takeBlock(s, client)
	case atPublishNext:
		m.publishNext(s, client)
	case atClaim:
		m.claim(s, client)
	case atPartSlot:
		c.part[c.which] = m.load(s, client, c.of.current.block(), m.nth(c.which))
		if c.which++; c.which == growSlots {
			c.which = 0
			m.freezeNext(s, client)
		}
	case atFreeze:
		m.freeze(s, client)
	case atPartRecord:
		m.read(s, client, c.part[c.which].record())
		c.copying, c.view, c.kept = true, c.of, c.part[c.which]
		c.next, c.read, c.index, c.at = true, 0, 0, atSlot
	case atMark:
		m.swap(s, client, c.of.current.block(), m.nth(c.which), c.part[c.which], growMoved)
		c.which++
		m.markNext(s, client)
	case atTurn:
		if s.view.current == c.of.current {
			s.view.current = c.of.next
			m.leaveIndex(s, c.of.current.block())
		}
		m.over(s, client)
	}
}

// viewed continues grow, help or moving, with the owner's view that during has read.
func (m *growModel) viewed(s *growState, client int) {
	c := &s.clients[client]
	now := c.view
	switch c.moves {
	case movesAnew:
		m.leave(s, client)
		switch {
		case c.pending && now.current != c.of.current:
			m.over(s, client)
		case now.moving():
			c.of, c.moves, c.at = now, movesClaiming, atMoverCurrent
		default:
			c.of, c.at = now, atTakeBlock
		}
	case movesHelping:
		if c.of = now; now.moving() {
			c.at = atClaim
		} else {
			m.over(s, client)
		}
	default:
		if now != c.of && m.fault != viewKept {
			m.over(s, client)
			return
		}
		switch c.moves {
		case movesClaiming:
			c.at = atClaim
		case movesAll:
			m.startPart(c)
		case movesTurning:
			c.at = atTurn
		}
	}
	if !c.announced && c.moves != movesNothing {
		// The view is read again later. Clearing it keeps states equal that differ in nothing else.
		c.view = growView{}
	}
}

// takeBlock is Table.takeBlock. It does not wait. An operation without a slot tries again.
func (m *growModel) takeBlock(s *growState, client int) {
	c := &s.clients[client]
	for block := range uint8(growBlocks) {
		if s.free[block] && s.knowing[block] == 0 {
			s.free[block], s.cursor[block], s.slots[block] = false, 0, [growSlots]growSlot{}
			c.block, c.at = block, atPublishNext
			return
		}
	}
	m.over(s, client)
}

// publishNext is Table.publish.
func (m *growModel) publishNext(s *growState, client int) {
	c := &s.clients[client]
	next := (c.of.current/generationUnit+1)*generationUnit + growControl(c.block)
	known := c.of.current
	if m.fault == publishedByNext {
		known = c.of.next
	}
	if s.view.next == known || m.fault == publishedTwice {
		s.view.next = next
	} else {
		s.free[c.block] = true
		if next = s.view.next; !(growView{c.of.current, next}).moving() {
			// The two words of its view were read at different moments, and another index is current.
			m.over(s, client)
			return
		}
	}
	c.of.next = next
	c.block, c.moves, c.at = 0, movesClaiming, atMoverCurrent
}

// claim is the atomic add of Table.moveNext. There is one part, so all counts from 2 on are the same.
func (m *growModel) claim(s *growState, client int) {
	c := &s.clients[client]
	block := c.of.next.block()
	m.load(s, client, block, 0)
	c.claimed = s.cursor[block]
	s.cursor[block] = min(c.claimed+1, 2)
	if c.claimed == 0 {
		m.startPart(c)
	} else {
		m.partEnded(s, client)
	}
}

// startPart begins Table.movePart.
func (m *growModel) startPart(c *growClient) { c.which, c.at = 0, atPartSlot }

// freezeNext goes to the next slot that part.freeze swaps, or else to copying.
func (m *growModel) freezeNext(s *growState, client int) {
	c := &s.clients[client]
	left := func(at growSlot) bool { return m.frozen(at) != at }
	if !slices.ContainsFunc(c.part[:], left) {
		c.which = 0
		if m.fault == movedFirst {
			m.markNext(s, client)
		} else {
			m.copyNext(s, client)
		}
		return
	}
	for c.which %= growSlots; !left(c.part[c.which]); {
		c.which = (c.which + 1) % growSlots
	}
	c.at = atFreeze
}

// frozen is part.frozen.
func (m *growModel) frozen(at growSlot) growSlot {
	switch {
	case at == 0:
		return growClosed
	case at.frozen():
		return at
	case !at.live():
		return growMoved
	case m.fault == notFrozen:
		return at
	}
	return at | growFrozen
}

// freeze is a compare-and-swap of part.freeze.
func (m *growModel) freeze(s *growState, client int) {
	c := &s.clients[client]
	block, known := c.of.current.block(), c.part[c.which]
	to := m.frozen(known)
	was := m.swap(s, client, block, m.nth(c.which), known, to)
	switch {
	case was == known:
		c.part[c.which] = to
		if to == growMoved {
			m.retire(s, known.record())
		}
	default:
		c.part[c.which] = was
		if m.fault == droppedTwice && to == growMoved && was == growMoved {
			m.retire(s, known.record())
		}
	}
	c.which++
	m.freezeNext(s, client)
}

// copyNext goes to the next slot that part.copy copies.
func (m *growModel) copyNext(s *growState, client int) {
	c := &s.clients[client]
	for ; c.which < growSlots; c.which++ {
		if !c.part[c.which].left() {
			c.at = atPartRecord
			return
		}
	}
	c.which = 0
	if m.fault == movedFirst {
		m.partEnded(s, client)
	} else {
		m.markNext(s, client)
	}
}

// copied continues when the next index has the key.
func (m *growModel) copied(s *growState, client int) {
	c := &s.clients[client]
	*c = growClient{op: c.op, pending: c.pending, announced: true, known: c.known, noted: c.noted,
		moves: c.moves, which: c.which + 1, part: c.part, of: c.of, claimed: c.claimed}
	m.copyNext(s, client)
}

// markNext goes to the next slot that movePart makes moved.
func (m *growModel) markNext(s *growState, client int) {
	c := &s.clients[client]
	for ; c.which < growSlots; c.which++ {
		if !c.part[c.which].left() {
			c.at = atMark
			return
		}
	}
	c.which = 0
	if m.fault == movedFirst {
		m.copyNext(s, client)
	} else {
		m.partEnded(s, client)
	}
}

// partEnded continues help or moveAll after moveNext or movePart.
func (m *growModel) partEnded(s *growState, client int) {
	c := &s.clients[client]
	m.leave(s, client)
	to := c.moves
	switch {
	case c.moves == movesHelping && (c.claimed < 2 || m.fault == leftAlone):
		m.over(s, client)
		return
	case c.moves == movesHelping:
		to = movesClaiming
	case c.moves == movesClaiming && c.claimed > 0 && m.fault == turnedEarly:
		to = movesTurning
	case c.moves == movesClaiming && c.claimed > 0:
		to = movesAll
	case c.moves == movesAll:
		to = movesTurning
	}
	*c = growClient{op: c.op, pending: c.pending, known: c.known, noted: c.noted, moves: to, of: c.of, at: atMoverCurrent}
}

// over ends the moving of keys. An operation that found no slot begins again.
func (m *growModel) over(s *growState, client int) {
	c := &s.clients[client]
	m.leave(s, client)
	if c.pending {
		m.begin(c)
	} else {
		c.finish()
	}
}

// leaveIndex frees the block of the index that is no longer current, when all clients that are announced now have left.
func (m *growModel) leaveIndex(s *growState, block uint8) {
	for _, at := range s.slots[block] {
		if !at.left() {
			m.fail("an index is left that has keys")
		}
	}
	s.free[block], s.knowing[block] = true, s.announced()
	if m.fault == indexFreed {
		s.knowing[block] = 0
	}
}
