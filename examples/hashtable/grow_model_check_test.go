package hashtable

import (
	"encoding/binary"
	"slices"
)

// A growFault is a deliberate error in a variant of the protocol.
type growFault uint8

const (
	noFault growFault = iota
	// notFrozen copies keys whose slots may still change. movedFirst makes slots moved before their keys are copied.
	notFrozen
	movedFirst
	// publishedTwice sets the next index whatever its value is. publishedByNext sets it if it has the value that was
	// read, even if another index became current since.
	publishedTwice
	publishedByNext
	// closedTaken inserts a key in a closed slot. notClosed inserts a key in the next index while it may still appear
	// in the current one.
	closedTaken
	notClosed
	// keptNamed changes a key while its frozen slot still refers to its record. frozenLast lets a Put that finds a
	// frozen slot count as if it had come just before another operation.
	keptNamed
	frozenLast
	// copiedOver copies a value over a newer one. copiedOnward copies a key to an index that keys have left.
	copiedOver
	copiedOnward
	// turnedEarly makes an index current as soon as all parts have been claimed. leftAlone lets no client finish what
	// another has begun.
	turnedEarly
	leftAlone
	// leftMissed does not look in the next index for a key that may have left.
	leftMissed
	// indexFreed frees an index at once. viewKept and outdatedTaken do not read again what was known of the indexes.
	indexFreed
	viewKept
	outdatedTaken
	// droppedTwice lets every client that finds a deleted key's slot moved free its record.
	droppedTwice
)

// A witness holds sets of outcomes. An outcome is a state that a key may have reached through the operations that have
// begun, as a word:
//
//	bits 0-3   the record under the key, or 0
//	then       for each client four bits: 0 if its operation has not taken effect, else its result plus 1
type witness struct {
	sets    [][]uint16
	numbers map[string]uint16
	// later caches, for each set and the pending operations, the set after any of them have taken effect.
	later map[effects]uint16
}

// effects are pending operations that may take effect after an outcome of a set. There is one for each client, by its
// number plus 1.
type effects struct {
	set uint16
	key uint8
	ops [growClients]uint8
}

const outcomeBits = 4

// number returns the number of a set, and adds the set if it is new.
func (w *witness) number(set []uint16) uint16 {
	slices.Sort(set)
	var name []byte
	for _, outcome := range set {
		name = binary.NativeEndian.AppendUint16(name, outcome)
	}
	n, known := w.numbers[string(name)]
	if !known {
		n = uint16(len(w.sets))
		w.sets = append(w.sets, set)
		w.numbers[string(name)] = n
	}
	return n
}

// outcomes returns the number of the set of outcomes that a key may have reached.
func (m *growModel) outcomes(s *growState, key uint8) uint16 {
	e := effects{set: s.possible[key], key: key}
	for i := range s.clients {
		if c := &s.clients[i]; c.pending && m.programs[i][c.op].key == key {
			e.ops[i] = c.op + 1
		}
	}
	n, known := m.later[e]
	if known {
		return n
	}
	set := slices.Clone(m.sets[e.set])
	for at := 0; at < len(set); at++ {
		for i, op := range e.ops {
			if op == 0 || set[at]>>(outcomeBits*(i+1))&15 != 0 {
				continue
			}
			if next := m.effect(set[at], i, m.programs[i][op-1]); !slices.Contains(set, next) {
				set = append(set, next)
			}
		}
	}
	n = m.number(set)
	m.later[e] = n
	return n
}

// effect returns the outcome after a client's operation has taken effect on another outcome.
func (m *growModel) effect(outcome uint16, client int, op growOp) uint16 {
	value := outcome & 15
	result := value
	if op.kind != opGet {
		result = min(result, 1)
		outcome = outcome&^15 | uint16(op.record)
	}
	return outcome | (result+1)<<(outcomeBits*(client+1))
}

// returned makes a client's operation return. result is a record, or 1 if the key had one, or 0.
func (m *growModel) returned(s *growState, client int, result uint8) {
	c := &s.clients[client]
	key, shift := m.programs[client][c.op].key, outcomeBits*(client+1)
	var set []uint16
	for _, outcome := range m.sets[m.outcomes(s, key)] {
		if outcome>>shift&15 == uint16(result)+1 {
			set = append(set, outcome&^(15<<shift))
		}
	}
	if len(set) == 0 {
		m.fail("a result comes from no order of operations")
	}
	s.possible[key] = m.number(set)
	c.pending = false
}

// indexes returns the blocks of the indexes that have keys.
func (s *growState) indexes() []uint8 {
	both := [...]uint8{s.view.current.block(), s.view.next.block()}
	if s.view.moving() {
		return both[:]
	}
	return both[:1]
}

// inspect checks what holds in every state.
func (m *growModel) inspect(s *growState, done bool, by int) {
	if done {
		m.quiet(s)
	}
	for client := range s.clients {
		// The client that took the last step could end alone before that step. Ending alone from there includes this
		// state.
		if client != by && !s.clients[client].dead {
			m.alone = *s
			m.endAlone(&m.alone, client)
		}
	}
	blocks := s.indexes()
	for key := range uint8(growKeys) {
		var found [2]growSlot
		for i, block := range blocks {
			for _, at := range s.slots[block] {
				record := at.record()
				if record == 0 || m.keyOf[record] != key {
					continue
				}
				if found[i] != 0 {
					m.fail("a key has two slots")
				}
				found[i] = at
				if s.freeRecords>>record&1 == 1 {
					m.fail("a record is free to which a slot refers")
				}
			}
		}
		value := found[0]
		if found[1] != 0 {
			value = found[1]
			if found[0] != 0 && !found[0].frozen() {
				m.fail("a key has two slots")
			}
		}
		now := uint16(0)
		if value.live() {
			now = uint16(value.record())
		}
		if !slices.ContainsFunc(m.sets[m.outcomes(s, key)], func(outcome uint16) bool { return outcome&15 == now }) {
			m.fail("a value comes from no order of operations")
		}
	}
}

// quiet checks that no record is lost, unless a client that held it has died.
func (m *growModel) quiet(s *growState) {
	var named uint8
	for _, block := range s.indexes() {
		for _, at := range s.slots[block] {
			named |= 1 << at.record()
		}
	}
	if lost := s.published &^ s.freeRecords &^ named; lost != 0 && !s.dead {
		m.fail("a record is lost")
	}
}

// mostAlone is more steps than any client takes alone.
const mostAlone = 300

// endAlone lets a client continue alone, and then help to move keys, until no keys move.
func (m *growModel) endAlone(s *growState, client int) {
	c := &s.clients[client]
	for steps := 0; m.wrong == ""; steps++ {
		switch {
		case steps > mostAlone:
			m.fail("a client comes to no end alone")
		case c.at != atIdle || !m.ended(s, client):
			m.step(s, client)
		case s.view.moving():
			c.moves, c.at = movesHelping, atMoverCurrent
		default:
			return
		}
	}
}

// newGrowModel numbers the records that programs put. Lower numbers are for the records that keys have before.
func newGrowModel(variant growVariant, programs [growClients][]growOp) *growModel {
	m := &growModel{growVariant: variant, witness: witness{numbers: make(map[string]uint16), later: make(map[effects]uint16)}}
	record := uint8(1)
	for key := range uint8(growKeys) {
		m.keyOf[record] = key
		record++
	}
	for client, program := range programs {
		m.programs[client] = slices.Clone(program)
		for i := range program {
			if op := &m.programs[client][i]; op.kind == opPut {
				op.record = record
				m.keyOf[record] = op.key
				record++
			}
		}
	}
	return m
}

// keyBefore is the state of a key in the first index: no slot, an entry, or a deleted entry.
type keyBefore uint8

const (
	keyNone keyBefore = iota
	keyThere
	keyGone
)

// initial returns the state before the first step.
func (m *growModel) initial(keys [growKeys]keyBefore) growState {
	s := growState{free: [growBlocks]bool{false, true, true}}
	taken := 0
	for key, before := range keys {
		record, value := uint8(key+1), uint16(0)
		at := newGrowSlot(record)
		if before == keyThere {
			value = uint16(record)
		} else {
			at &^= growLive
		}
		if before != keyNone {
			s.slots[0][taken] = at
			s.published |= 1 << record
			taken++
		}
		s.possible[key] = m.number([]uint16{value})
	}
	return s
}
