package hashtable

import (
	"encoding/binary"
	"slices"
)

// A growFault is what a variant of the protocol does that is wrong.
type growFault uint8

const (
	noFault growFault = iota
	// notFrozen: keys are copied whose slots may still change. movedFirst: slots are moved before they are copied.
	notFrozen
	movedFirst
	// publishedTwice: the next index is set whatever it was. publishedByNext: it is set if it is what was read, perhaps
	// after another had become current.
	publishedTwice
	publishedByNext
	// closedTaken: a key is inserted in a closed slot. notBarred: one is inserted in the next index that may come to the current one.
	closedTaken
	notBarred
	// keptNamed: a key is changed whose frozen slot still refers to its record. frozenLast: a Put that finds a frozen
	// slot counts as having come before somebody else's.
	keptNamed
	frozenLast
	// carriedOver: a value is copied over a newer one. copiedOnward: a key is copied to an index that has been left.
	carriedOver
	copiedOnward
	// turnedEarly: an index becomes current when all has been begun. leftAlone: nobody ends what another has begun.
	turnedEarly
	leftAlone
	// leftMissed: the next index is not looked at for a key that may have left.
	leftMissed
	// indexFreed: an index is free at once. viewKept, outdatedTaken: what was known of indexes is not read again.
	indexFreed
	viewKept
	outdatedTaken
	// droppedTwice: everybody who finds a deleted key's slot moved sets its record free.
	droppedTwice
)

// A witness has sets of outcomes: what a key may have come to by the operations that have begun. An outcome is a word:
//
//	bits 0-3   the record under the key, or 0
//	then       for each client four bits: 0 if its operation has not taken effect, else its result plus 1
type witness struct {
	sets    [][]uint16
	numbers map[string]uint16
	// later has sets with all that may take effect at once.
	later map[effects]uint16
}

// effects are operations, one of each client and by their numbers plus 1, that may take effect on what set number has.
type effects struct {
	set uint16
	key uint8
	ops [growClients]uint8
}

const outcomeBits = 4

// number is that of a set.
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

// outcomes numbers the set of what a key may have come to by now.
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

// effect is the outcome when a client's operation has taken effect after another outcome.
func (m *growModel) effect(outcome uint16, client int, op growOp) uint16 {
	value := outcome & 15
	result := value
	if op.kind != opGet {
		result = min(result, 1)
		outcome = outcome&^15 | uint16(op.record)
	}
	return outcome | (result+1)<<(outcomeBits*(client+1))
}

// returned has a client's operation return a record, or whether there was one.
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

// indexes are the blocks in which keys are.
func (s *growState) indexes() []uint8 {
	both := [...]uint8{s.view.current.block(), s.view.next.block()}
	if s.view.moving() {
		return both[:]
	}
	return both[:1]
}

// inspect looks at what must hold whenever it is looked at.
func (m *growModel) inspect(s *growState, done bool, by int) {
	if done {
		m.quiet(s)
	}
	for client := range s.clients {
		// Whoever has come here by a step of its own could end alone before it, and has done so over this state.
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

// quiet looks for records that nobody has, unless somebody has died who had them.
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

// endAlone has a client go on alone, and tend to the index as those do whose operations insert, until no keys move.
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

// newGrowModel numbers the records that programs put, after those that keys may have before.
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

// keyBefore is whether a key has a slot in the first index, and is there.
type keyBefore uint8

const (
	keyNone keyBefore = iota
	keyThere
	keyGone
)

// initial is the state before anybody has begun.
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
