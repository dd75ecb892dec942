package hashtable

// The model of growth has one owner's indexes and every order of the atomic steps of three clients. In some variants
// one client may die between any two steps. A step is one access to the owner's memory, together with the client's
// decision that follows from it. A comment names the function that the step stands for. The model simplifies, to have
// few states:
//
//   - An announcement begins with the first access that it covers and ends with the last. A longer announcement would
//     only delay the reuse of memory.
//   - A record is complete when it is published; TestModel covers the writing. No record is used twice. After the step
//     that frees a record, no slot may refer to it. Only clients that were announced at that step may read it.
//   - An index is one bucket of two slots, in one part, and all fingerprints match. An index of twice the slots has two
//     slots as well, both of them for new keys, because there are two keys.
//   - A client knows at once which value its compare-and-swap has met. On mapped memory the code loads the slot after
//     that. This makes no difference, because values of slots do not recur.
//   - A block is zero as soon as it is taken, and the keys of a part are copied one after the other.

const (
	growClients = 3
	growSlots   = 2
	growKeys    = 2
	growBlocks  = 3
	// growRecords bounds the numbers of records, from 1 on. A record's number is its value.
	growRecords = 8
)

// A growSlot is a slot: empty (0), closed, moved, or a record's number above two bits.
type growSlot uint8

const (
	growLive    growSlot = 1
	growFrozen  growSlot = 2
	growClosed  growSlot = 1
	growMoved   growSlot = 2
	recordShift          = 2
)

func (g growSlot) record() uint8 { return uint8(g >> recordShift) }
func (g growSlot) live() bool    { return g.record() > 0 && g&growLive != 0 }
func (g growSlot) left() bool    { return g == growClosed || g == growMoved }
func (g growSlot) frozen() bool  { return g.left() || g&growFrozen != 0 }

func newGrowSlot(record uint8) growSlot { return growSlot(record)<<recordShift | growLive }

// A growControl is a control: the block of an index, and above two bits the generation.
type growControl uint8

const generationUnit growControl = 4

func (c growControl) block() uint8 { return uint8(c % generationUnit) }

// A growView is a view.
type growView struct{ current, next growControl }

func (v growView) moving() bool { return v.next/generationUnit == v.current/generationUnit+1 }

// A growStep is the next step of a client.
type growStep uint8

const (
	atIdle growStep = iota
	atCurrent
	atNext
	atSlot
	atCompare
	atCloseSlot
	atCopySlot
	atMarkSlot
	atSetSlot
	atMoverCurrent
	atMoverNext
	atTakeBlock
	atPublishNext
	atClaim
	atPartSlot
	atFreeze
	atPartRecord
	atMark
	atTurn
)

// A growOp is an operation of a client's program. opMove replaces the index.
type growOp struct {
	kind opKind
	key  uint8
	// record is the record of a Put.
	record uint8
}

type growClient struct {
	op        uint8
	at        growStep
	announced bool
	// pending is set while an operation has begun and not returned. dead is set if it never will.
	pending, dead bool
	// known is the control of the current index that is kept between operations, as in Table.known.
	known growControl
	// These fields belong to the operation, as in the code. read counts the slots that were read.
	view        growView
	next, left  bool
	found       bool
	kept        growSlot
	keptAt      uint8
	index, read uint8
	slots       [growSlots]growSlot
	current     growSlot
	// noted is set if the operation was to insert a key while keys were moving.
	noted bool
	// moves is the function that moves keys. part has the slots in the order in which they are accessed, and which is
	// the current one. copying is set while the client copies that slot's key.
	moves   growMoves
	copying bool
	which   uint8
	part    [growSlots]growSlot
	// of is the view by which keys are moved. claimed is the number of parts that had been claimed before. block is the
	// block for the next index.
	of      growView
	claimed uint8
	block   uint8
}

// A growState is the state of the owner's memory and of all clients.
type growState struct {
	view   growView
	slots  [growBlocks][growSlots]growSlot
	cursor [growBlocks]uint8
	// free marks blocks that are no index. knowing has the clients that may still know them. freeRecords and
	// knowingRecord are the same for records.
	free          [growBlocks]bool
	knowing       [growBlocks]uint8
	published     uint8
	freeRecords   uint8
	knowingRecord [growRecords]uint8
	clients       [growClients]growClient
	// dead is set when a client has died. No other client dies then.
	dead bool
	// possible has, for each key, the number of its set of outcomes: see witness.
	possible [growKeys]uint16
}

// A growVariant is a variant of the model, with a fault if it is a wrong one.
type growVariant struct {
	// mortal has the clients of which one may die. asMany is set if the next index has no more slots than the current
	// one. remote is set if the owner's memory is not mapped.
	mortal         uint8
	asMany, remote bool
	fault          growFault
}

type growModel struct {
	exploration[growState]
	growVariant
	witness
	programs [growClients][]growOp
	keyOf    [growRecords]uint8
	// alone is the state of endAlone, allocated once.
	alone growState
}

// clients returns the number of clients and of their deaths. A death is a step of a client of its own.
func (m *growModel) clients() int { return 2 * growClients }

func (m *growModel) ended(s *growState, client int) bool {
	c := &s.clients[client%growClients]
	if c.dead || int(c.op) >= len(m.programs[client%growClients]) {
		return true
	}
	return client >= growClients && (s.dead || m.mortal>>(client-growClients)&1 == 0)
}

// step carries out the next step of a client, or its death.
func (m *growModel) step(s *growState, client int) bool {
	if client >= growClients {
		return m.die(s, client-growClients)
	}
	c := &s.clients[client]
	if c.at == atIdle {
		m.start(s, client)
	}
	switch c.at {
	case atCurrent, atNext, atSlot:
		m.look(s, client)
	case atMoverCurrent, atMoverNext, atTakeBlock, atPublishNext, atClaim, atPartSlot, atFreeze, atPartRecord, atMark, atTurn:
		m.move(s, client)
	default:
		m.change(s, client)
	}
	return true
}

// die ends a client between two steps of an operation. The client is no longer announced, and its local state is lost.
func (m *growModel) die(s *growState, client int) bool {
	c := &s.clients[client]
	if c.at == atIdle {
		return false
	}
	m.leave(s, client)
	*c = growClient{op: c.op, pending: c.pending, dead: true}
	s.dead = true
	return true
}

// start begins the next operation.
func (m *growModel) start(s *growState, client int) {
	c := &s.clients[client]
	if m.programs[client][c.op].kind == opMove {
		c.moves, c.at = movesAnew, atMoverCurrent
		return
	}
	c.pending = true
	m.begin(c)
}

// begin is Batch.begin.
func (m *growModel) begin(c *growClient) {
	*c = growClient{op: c.op, pending: c.pending, announced: c.announced, known: c.known, noted: c.noted, at: atCurrent}
	if m.remote {
		c.view.current, c.at = c.known, atSlot
	}
}

// finish ends the operation.
func (c *growClient) finish() { *c = growClient{op: c.op + 1, known: c.known} }

// enter is Table.enter, and leave is Table.leave.
func (s *growState) enter(client int) { s.clients[client].announced = true }

func (m *growModel) leave(s *growState, client int) {
	s.clients[client].announced = false
	for i := range s.knowing {
		s.knowing[i] &^= 1 << client
	}
	for i := range s.knowingRecord {
		s.knowingRecord[i] &^= 1 << client
	}
}

// announced returns the clients that are announced: they may know a block or a record that becomes free now.
func (s *growState) announced() (clients uint8) {
	for i := range s.clients {
		if s.clients[i].announced {
			clients |= 1 << i
		}
	}
	return clients
}

// retire frees a record when all clients that are announced now have left.
func (m *growModel) retire(s *growState, record uint8) {
	if record == 0 {
		return
	}
	if s.freeRecords>>record&1 == 1 {
		m.fail("a record is set free twice")
	}
	s.freeRecords |= 1 << record
	s.knowingRecord[record] = s.announced()
}

// load reads a slot of an index that the client has found in a view.
func (m *growModel) load(s *growState, client int, block, index uint8) growSlot {
	if s.free[block] && s.knowing[block]>>client&1 == 0 {
		m.fail("an index is used that is none")
	}
	return s.slots[block][index]
}

// swap is a compare-and-swap of a slot.
func (m *growModel) swap(s *growState, client int, block, index uint8, known, to growSlot) (was growSlot) {
	if was = m.load(s, client, block, index); was == known {
		s.slots[block][index] = to
	}
	return was
}

// inBlock returns the block that the operation is looking at.
func (c *growClient) inBlock() uint8 {
	if c.next {
		return c.view.next.block()
	}
	return c.view.current.block()
}

// look reads the view and the bucket. If the owner is mapped, the view is read first, as in viewIn and Batch.do.
// Otherwise the bucket is read along with the view, in the worst case before it.
func (m *growModel) look(s *growState, client int) {
	c := &s.clients[client]
	s.enter(client)
	switch c.at {
	case atCurrent:
		c.at = atNext
		if m.remote && c.view.current != s.view.current {
			// The view is outdated, as settleViews finds.
			c.known = s.view.current
			if m.fault != outdatedTaken {
				m.begin(c)
			}
			return
		}
		c.view.current = s.view.current
	case atNext:
		c.view.next = s.view.next
		if c.at = atSlot; m.remote {
			m.load(s, client, c.inBlock(), 0)
			m.scan(s, client)
		}
	case atSlot:
		index := m.nth(c.read)
		if m.remote && !c.next {
			c.slots[index] = s.slots[c.inBlock()][index]
		} else {
			c.slots[index] = m.load(s, client, c.inBlock(), index)
		}
		if c.read++; c.read < growSlots {
			return
		}
		if m.remote && !c.next {
			c.at = atCurrent
			return
		}
		m.scan(s, client)
	}
}

// nth returns the slot of the n-th access. Accesses to memory that is not mapped have no order; there the model
// reverses it.
func (m *growModel) nth(n uint8) uint8 {
	if m.remote {
		return growSlots - 1 - n
	}
	return n
}

// change compares a record, or sets a slot.
func (m *growModel) change(s *growState, client int) {
	c := &s.clients[client]
	switch c.at {
	case atCompare:
		m.compare(s, client)
	case atCloseSlot:
		to := growClosed
		if c.current != 0 {
			to = growMoved
		}
		m.afterClose(s, client, m.swap(s, client, c.inBlock(), c.index, c.current, to))
	case atCopySlot:
		if m.fault == copiedOver {
			s.slots[c.inBlock()][c.index] = 0
		}
		m.afterCopy(s, client, m.swap(s, client, c.inBlock(), c.index, 0, c.kept&^growFrozen))
	case atMarkSlot:
		m.swap(s, client, c.view.current.block(), c.keptAt, c.kept, growMoved)
		c.kept = 0
		m.decide(s, client)
	case atSetSlot:
		op := m.programs[client][c.op]
		to := newGrowSlot(op.record)
		if op.kind == opDelete {
			to = c.current &^ growLive
		}
		m.swapped(s, client, m.swap(s, client, c.inBlock(), c.index, c.current, to))
	}
}
