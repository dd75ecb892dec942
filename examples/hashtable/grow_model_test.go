package hashtable

// The model of growth is one owner's indexes in atomic steps, and every order of the steps of three clients, some of which
// may die at any of them. A step is one access to the owner's memory and what its client decides by it; a comment
// names the function that it stands for. To have few states:
//
//   - An announcement begins with the first access of what it announces, and ends with the last one: what is announced
//     for longer is only held up for longer.
//   - A record is there as soon as it is published, as TestModel is about. None is used twice: what was set
//     free must not be read by anybody who was not announced then, nor be in a slot, from that very step on.
//   - An index is one bucket of two slots in one part, and all fingerprints match. One of twice the
//     slots has as many, of which all are for new keys: there are two keys.
//   - What a compare-and-swap has met its client knows at once, though where the owner is mapped it is loaded after that: what
//     a slot was does not recur. A block is zero as soon as it is taken, and the keys of a part are copied one after the other.

const (
	growClients = 3
	growSlots   = 2
	growKeys    = 2
	growBlocks  = 3
	// growRecords are numbered from 1 on; a record's number is the value that it has.
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

// A growControl is a control: an index's block, and above two bits the generation.
type growControl uint8

const generationUnit growControl = 4

func (c growControl) block() uint8 { return uint8(c % generationUnit) }

// A growView is a view.
type growView struct{ current, next growControl }

func (v growView) moving() bool { return v.next/generationUnit == v.current/generationUnit+1 }

// What a client does next.
type growStep uint8

const (
	atIdle growStep = iota
	atCurrent
	atNext
	atSlot
	atCompare
	atBarSlot
	atCarrySlot
	atLeaveSlot
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
	// record is a Put's.
	record uint8
}

type growClient struct {
	op        uint8
	at        growStep
	announced bool
	// pending: the operation has begun and not returned. dead: it never will.
	pending, dead bool
	// known is what is remembered of the current index from one operation to the next, as in Table.known.
	known growControl
	// These are an operation's, as the code has them; read counts the slots that were read.
	view        growView
	next, left  bool
	found       bool
	kept        growSlot
	keptAt      uint8
	index, read uint8
	slots       [growSlots]growSlot
	current     growSlot
	// noted: keys were moving, and one was to be inserted.
	noted bool
	// moves is what a client is about that moves keys. part are slots as they are accessed, of which it has come to which;
	// copying: it copies that.
	moves   growMoves
	copying bool
	which   uint8
	part    [growSlots]growSlot
	// of is the view by which keys are moved, claimed how many had begun before, block one that is to be the next index.
	of      growView
	claimed uint8
	block   uint8
}

// A growState is all there is.
type growState struct {
	view   growView
	slots  [growBlocks][growSlots]growSlot
	cursor [growBlocks]uint8
	// free are blocks that are no index, knowing the clients that may know them yet; so with records.
	free          [growBlocks]bool
	knowing       [growBlocks]uint8
	published     uint8
	freeRecords   uint8
	knowingRecord [growRecords]uint8
	clients       [growClients]growClient
	// dead: one has died, and nobody else does.
	dead bool
	// possible numbers, for each key, what it may have come to: see witness.
	possible [growKeys]uint16
}

// A growVariant is what may happen, and is wrong.
type growVariant struct {
	// mortal are the clients of which one may die. asMany: the next index does not have twice the slots. remote: the
	// owner's memory is not mapped.
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

// clients are those that go on, and their deaths.
func (m *growModel) clients() int { return 2 * growClients }

func (m *growModel) ended(s *growState, client int) bool {
	c := &s.clients[client%growClients]
	if c.dead || int(c.op) >= len(m.programs[client%growClients]) {
		return true
	}
	return client >= growClients && (s.dead || m.mortal>>(client-growClients)&1 == 0)
}

// step has a client go on, or die.
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

// die ends a client between two steps of an operation: what it was about nobody else knows, and it is announced no more.
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

// enter is Table.enter, leave Table.leave.
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

// announced are the clients that may know what nobody comes to know any more.
func (s *growState) announced() (clients uint8) {
	for i := range s.clients {
		if s.clients[i].announced {
			clients |= 1 << i
		}
	}
	return clients
}

// retire has a record be free as soon as those have left who are announced.
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

// load reads a slot, as one does who has found its index in a view.
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

// inBlock is the block that the operation is looking at.
func (c *growClient) inBlock() uint8 {
	if c.next {
		return c.view.next.block()
	}
	return c.view.current.block()
}

// look reads what an operation goes by. Where the owner is mapped that is the view, as in viewIn, and then the bucket, as in
// Batch.do; elsewhere the bucket comes along with the view: before it, at worst.
func (m *growModel) look(s *growState, client int) {
	c := &s.clients[client]
	s.enter(client)
	switch c.at {
	case atCurrent:
		c.at = atNext
		if m.remote && c.view.current != s.view.current {
			// outdated, as settleViews has found.
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

// nth is the slot that is accessed so many after another. Far away they are accessed in no order: in the other one, too.
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
	case atBarSlot:
		to := growClosed
		if c.current != 0 {
			to = growMoved
		}
		m.barred(s, client, m.swap(s, client, c.inBlock(), c.index, c.current, to))
	case atCarrySlot:
		if m.fault == carriedOver {
			s.slots[c.inBlock()][c.index] = 0
		}
		m.carried(s, client, m.swap(s, client, c.inBlock(), c.index, 0, c.kept&^growFrozen))
	case atLeaveSlot:
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
