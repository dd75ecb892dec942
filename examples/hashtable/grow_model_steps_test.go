package hashtable

// These functions decide the next step of an operation from what it has read. Each is named as in scan.go.

func (m *growModel) kind(client int, c *growClient) opKind {
	if c.copying {
		return opMove
	}
	return m.programs[client][c.op].kind
}

func (m *growModel) key(client int, c *growClient) uint8 {
	if c.copying {
		return m.keyOf[c.kept.record()]
	}
	return m.programs[client][c.op].key
}

// scan is Batch.scan.
func (m *growModel) scan(s *growState, client int) {
	c := &s.clients[client]
	for ; c.index < growSlots; c.index++ {
		switch at := c.slots[c.index]; {
		case at == 0:
			m.vacant(s, client)
			return
		case at.frozen():
			if m.leaving(s, client, at) {
				return
			}
		default:
			c.current, c.at = at, atCompare
			return
		}
	}
	m.exhausted(s, client)
}

// leaving is Batch.leaving.
func (m *growModel) leaving(s *growState, client int, at growSlot) bool {
	c := &s.clients[client]
	switch {
	case c.next && c.copying && m.fault == copiedOnward:
		return false
	case c.next && c.copying:
		m.copied(s, client)
	case c.next:
		m.begin(c)
	case at == growClosed && m.fault == closedTaken && m.kind(client, c) == opPut:
		c.current, c.at = at, atSetSlot
	case at == growClosed && m.fault == leftMissed && m.kind(client, c) == opGet:
		m.done(s, client, 0)
	case at == growClosed:
		c.left = true
		m.follow(client, c)
	case at == growMoved:
		c.left = true
		return false
	default:
		c.current, c.at = at, atCompare
	}
	return true
}

// vacant is Batch.vacant, and absent.
func (m *growModel) vacant(s *growState, client int) {
	c := &s.clients[client]
	kind := m.kind(client, c)
	switch {
	case c.next && c.kept != 0:
		c.current, c.at = 0, atCopySlot
	case c.next && kind == opPut && m.asMany:
		// roomForNew returns 0.
		m.noSlot(s, client)
	case !c.next && kind == opPut && c.view.moving() && m.fault != notClosed:
		c.current, c.at = 0, atCloseSlot
	case !c.next && (c.left || kind == opPut && c.view.moving()):
		m.follow(client, c)
	case kind == opPut:
		c.current, c.at = 0, atSetSlot
	default:
		m.done(s, client, 0)
	}
}

// exhausted is Batch.exhausted.
func (m *growModel) exhausted(s *growState, client int) {
	c := &s.clients[client]
	kind := m.kind(client, c)
	switch {
	case !c.next && (c.left || c.view.moving()):
		m.follow(client, c)
	case kind == opPut || c.kept != 0:
		m.fail("a key finds no slot")
	default:
		m.done(s, client, 0)
	}
}

// follow is Batch.follow.
func (m *growModel) follow(client int, c *growClient) {
	if !c.view.moving() {
		m.begin(c)
		return
	}
	c.next, c.read, c.index, c.at = true, 0, 0, atSlot
	c.slots = [growSlots]growSlot{}
	c.noted = c.noted || m.kind(client, c) == opPut
}

// compare is Batch.compare.
func (m *growModel) compare(s *growState, client int) {
	c := &s.clients[client]
	record := c.current.record()
	m.read(s, client, record)
	switch {
	case m.keyOf[record] != m.key(client, c):
		c.index++
		m.scan(s, client)
	case c.current.frozen() && m.kind(client, c) != opGet:
		c.kept, c.keptAt = c.current, c.index
		m.follow(client, c)
	default:
		m.decide(s, client)
	}
}

// read reads a record whose number the client has found in a slot.
func (m *growModel) read(s *growState, client int, record uint8) {
	if s.freeRecords>>record&1 == 1 && s.knowingRecord[record]>>client&1 == 0 {
		m.fail("a record is read that is free")
	}
}

// decide is Batch.decide.
func (m *growModel) decide(s *growState, client int) {
	c := &s.clients[client]
	kind := m.kind(client, c)
	c.found = c.current.live()
	switch {
	case kind == opMove:
		m.copied(s, client)
	case c.kept != 0 && m.fault != keptNamed:
		c.at = atMarkSlot
	case kind == opPut && !c.current.live() && !c.next && c.view.moving():
		c.at = atCloseSlot
	case kind == opPut || kind == opDelete && c.current.live():
		c.at = atSetSlot
	case c.current.live():
		m.done(s, client, c.current.record())
	default:
		m.done(s, client, 0)
	}
}

// afterClose is Batch.afterClose.
func (m *growModel) afterClose(s *growState, client int, was growSlot) {
	c := &s.clients[client]
	if was != c.current {
		c.slots[c.index] = was
		m.scan(s, client)
		return
	}
	m.retire(s, c.current.record())
	c.left = true
	m.follow(client, c)
}

// afterCopy is Batch.afterCopy.
func (m *growModel) afterCopy(s *growState, client int, was growSlot) {
	c := &s.clients[client]
	if was != 0 {
		c.slots[c.index] = was
		m.scan(s, client)
		return
	}
	c.current = c.kept &^ growFrozen
	m.decide(s, client)
}

// swapped is Batch.swapped.
func (m *growModel) swapped(s *growState, client int, was growSlot) {
	c := &s.clients[client]
	op := m.programs[client][c.op]
	switch {
	case was == c.current:
		if op.kind == opPut {
			s.published |= 1 << op.record
			m.retire(s, c.current.record())
		}
		m.done(s, client, 0)
	case c.current == 0:
		c.slots[c.index] = was
		m.scan(s, client)
	case was.frozen() && m.fault != frozenLast:
		m.begin(c)
	case op.kind == opPut && c.current.live():
		m.done(s, client, 0)
	default:
		c.current = was
		m.decide(s, client)
	}
}

// done is Batch.done and the end of Batch.Run. A client whose operation has met moving keys then helps to move them.
func (m *growModel) done(s *growState, client int, value uint8) {
	c := &s.clients[client]
	if op := m.programs[client][c.op]; op.kind != opGet && c.found {
		value = 1
	}
	m.returned(s, client, value)
	m.leave(s, client)
	if !c.noted {
		c.finish()
		return
	}
	*c = growClient{op: c.op, known: c.known, moves: movesHelping, at: atMoverCurrent}
}

// noSlot is Batch.failSlots and makeSlots.
func (m *growModel) noSlot(s *growState, client int) {
	c := &s.clients[client]
	m.leave(s, client)
	*c = growClient{op: c.op, known: c.known, pending: true, noted: true, of: growView{current: c.view.current}, moves: movesAnew, at: atMoverCurrent}
}
