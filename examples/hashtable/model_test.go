package hashtable

import (
	"testing"
)

// The model has the protocol of one slot and a few records, and every order of the atomic steps of three clients. A
// test of the code meets a wrong order only now and then; the model meets every order.

const (
	modelClients = 3
	modelRecords = 3
)

// A modelStep is a step of a client's program.
type modelStep uint8

const (
	modelBegin modelStep = iota
	modelTake
	modelWriteFirst
	modelWriteSecond
	modelRead
	modelSwap
	modelKill
	modelReadFirst
	modelReadSecond
	modelEnd
	modelLook
	modelPassed
	modelFree
)

var (
	modelReclaim = []modelStep{modelLook, modelPassed, modelFree}
	modelPut     = append([]modelStep{modelBegin, modelTake, modelWriteFirst, modelWriteSecond, modelRead, modelSwap, modelEnd}, modelReclaim...)
	modelGet     = []modelStep{modelBegin, modelRead, modelReadFirst, modelReadSecond, modelEnd}
	modelDelete  = []modelStep{modelBegin, modelRead, modelKill, modelEnd}
	// These programs are wrong: they free a record at once, or read the slot before their announcement.
	modelRashPut = []modelStep{modelBegin, modelTake, modelWriteFirst, modelWriteSecond, modelRead, modelSwap, modelEnd, modelFree}
	modelLateGet = []modelStep{modelRead, modelBegin, modelReadFirst, modelReadSecond, modelEnd}
	modelLatePut = append([]modelStep{modelTake, modelWriteFirst, modelWriteSecond, modelRead, modelBegin, modelSwap, modelEnd}, modelReclaim...)
)

func programOf(operations ...[]modelStep) (all []modelStep) {
	for _, operation := range operations {
		all = append(all, operation...)
	}
	return all
}

// A modelSlot is a reference to record-1, or 0.
type modelSlot struct {
	record uint8
	live   bool
}

type modelClient struct {
	at uint8
	// announced is odd while an operation runs.
	announced uint8
	// own is a record that was written and not published, old is one that was replaced. Each is its number plus 1.
	own, old uint8
	current  modelSlot
	// life is the life of current's record when current was read.
	life uint8
	// seen has the announcements that were read before old is freed.
	seen [modelClients]uint8
}

// A modelState is the state of the memory and of all clients.
type modelState struct {
	slot modelSlot
	// free marks the records that any client may take. lives counts how often each was taken.
	free          [modelRecords]bool
	lives         [modelRecords]uint8
	first, second [modelRecords]uint8
	clients       [modelClients]modelClient
}

type model struct {
	exploration[modelState]
	programs [modelClients][]modelStep
}

func (m *model) clients() int { return modelClients }

func (m *model) ended(s *modelState, client int) bool {
	return int(s.clients[client].at) == len(m.programs[client])
}

// inspect checks at the end that no record is lost.
func (m *model) inspect(s *modelState, done bool, _ int) {
	if !done {
		return
	}
	for r, free := range s.free {
		if referred := int(s.slot.record) == r+1; referred == free {
			m.fail("a record is lost, or free and in use")
		}
	}
}

// step carries out the next step of a client. It reports whether the client could take it.
func (m *model) step(s *modelState, client int) bool {
	c := &s.clients[client]
	step := m.programs[client][c.at]
	c.at++
	switch step {
	case modelBegin, modelEnd:
		c.announced++
	case modelTake:
		for r := range s.free {
			if s.free[r] {
				s.free[r] = false
				s.lives[r]++
				c.own = uint8(r + 1)
				break
			}
		}
	case modelWriteFirst:
		if c.own > 0 {
			s.first[c.own-1] = s.lives[c.own-1]
		}
	case modelWriteSecond:
		if c.own > 0 {
			s.second[c.own-1] = s.lives[c.own-1]
		}
	case modelRead:
		if c.current = s.slot; c.current.record > 0 {
			c.life = s.lives[c.current.record-1]
		}
	case modelReadFirst:
		m.compare(s.first, c)
	case modelReadSecond:
		m.compare(s.second, c)
	case modelSwap:
		m.swap(s, c)
	case modelKill:
		if c.current.live && m.met(s, c) {
			s.slot.live = false
		}
	case modelLook:
		for i := range s.clients {
			c.seen[i] = s.clients[i].announced
		}
	case modelPassed:
		for i, seen := range c.seen {
			if c.old > 0 && seen%2 == 1 && s.clients[i].announced == seen {
				return false
			}
		}
		c.seen = [modelClients]uint8{}
	case modelFree:
		m.release(s, &c.old)
	}
	return true
}

// compare reads the record that the slot's value named.
func (m *model) compare(written [modelRecords]uint8, c *modelClient) {
	if c.current.record > 0 && written[c.current.record-1] != c.life {
		m.fail("a record of another life was read")
	}
}

// met reports whether the slot has the value that the client has read, as a compare-and-swap does.
func (m *model) met(s *modelState, c *modelClient) bool {
	if s.slot != c.current {
		return false
	}
	if c.current.record > 0 && s.lives[c.current.record-1] != c.life {
		m.fail("a slot's value has recurred")
	}
	return true
}

func (m *model) swap(s *modelState, c *modelClient) {
	if c.own == 0 {
		return
	}
	if !m.met(s, c) {
		m.release(s, &c.own)
		return
	}
	c.old = c.current.record
	s.slot = modelSlot{c.own, true}
	c.own = 0
}

func (m *model) release(s *modelState, record *uint8) {
	if *record == 0 {
		return
	}
	if s.free[*record-1] {
		m.fail("a record is freed twice")
	}
	s.free[*record-1] = true
	*record = 0
}

// In every order of steps no operation meets a record that was reused since the operation found it. No record is in use
// twice, and none is lost. The wrong variants are found.
func TestModel(t *testing.T) {
	for _, c := range []struct {
		name     string
		programs [modelClients][]modelStep
		wrong    bool
	}{
		{"puts and gets", [modelClients][]modelStep{programOf(modelPut, modelPut), programOf(modelPut, modelPut), programOf(modelGet, modelGet)}, false},
		{"puts and a delete", [modelClients][]modelStep{programOf(modelPut, modelPut), programOf(modelPut, modelGet), programOf(modelDelete, modelPut)}, false},
		{"puts", [modelClients][]modelStep{programOf(modelPut, modelPut), programOf(modelPut, modelPut), modelPut}, false},
		{"records freed at once", [modelClients][]modelStep{programOf(modelRashPut, modelRashPut), modelRashPut, modelGet}, true},
		{"records freed at once beside a put", [modelClients][]modelStep{programOf(modelRashPut, modelRashPut, modelRashPut), modelPut}, true},
		{"a look before the announcement", [modelClients][]modelStep{programOf(modelPut, modelPut, modelPut), {}, modelLateGet}, true},
		{"a put's look before the announcement", [modelClients][]modelStep{programOf(modelPut, modelPut, modelPut), {}, modelLatePut}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			skipUnlessTurn(t, c.name)
			m := model{programs: c.programs}
			// At first the slot has a record in its first life.
			start := modelState{slot: modelSlot{1, true}, lives: [modelRecords]uint8{1}, first: [modelRecords]uint8{1}, second: [modelRecords]uint8{1}}
			start.free = [modelRecords]bool{false, true, true}
			m.explore(&m, start, c.wrong)
			m.judge(t, c.wrong)
		})
	}
}
