package sim

import (
	"math/bits"
	"time"
)

// kind is what an event does.
type kind uint8

const (
	// evLaunch: the card checks a queue pair's send queue again.
	evLaunch kind = iota
	// evPort: the output of a card is free again.
	evPort
	// evArrive and evReturn: the first byte of a piece of a request, or of a response with data, is at the other card.
	evArrive
	evReturn
	// evPlaced and evReturned: the last byte has been placed.
	evPlaced
	evReturned
	// evResponse: the responder has computed the response to a read or an atomic.
	evResponse
	// evAcknowledged: the requester learns how a request without data ended.
	evAcknowledged
	// evResume: a sender that found no receive tries again.
	evResume
	// evConnect, evAccepted, evRejected: a connection is requested, accepted, rejected.
	evConnect
	evAccepted
	evRejected
	// evParted: the other end of a connection has failed or was closed.
	evParted
	// evDeath: a watched device is closed.
	evDeath
	// evRing: a task rang that was ahead of the clock.
	evRing
	// evFault and evHealed: a fault begins, or ends.
	evFault
	evHealed
	// evEnter: the input of a card is free for the next piece that waits in the network.
	evEnter
	// evRelease: what a fault has held before the input of a card may enter.
	evRelease
	// evGiveUp: a queue pair may have waited too long for a response. evExhausted: it has tried too often to find a
	// receive.
	evGiveUp
	evExhausted
)

// An event is an action of a card at a time. Each kind uses the fields that its handler reads. An event is as large as
// a cache line.
type event struct {
	kind   kind
	status uint8
	last   bool
	epoch  uint32
	pair   *queuePair
	what   any
	number uint64
	until  time.Duration
	offset int
	bytes  int
}

// An entry orders an event: by time, then by a number drawn from the seed, the time and the lane, then by when it was
// scheduled. Events of one lane, such as the messages of one direction of a connection, therefore never change their
// order. The seed permutes all other events of one time.
type entry struct {
	at   time.Duration
	tie  uint32
	slot uint32
}

// A schedule holds the future events, in a heap of four children per node over entries without pointers. The first
// entry is at root, so that four children share a cache line. Slots are reused.
type schedule struct {
	seed  uint64
	heap  []entry
	slots []event
	free  []uint32
	// orders are the scheduling numbers of the slots, ordered the last of them.
	orders  []uint64
	ordered uint64
}

const root = 3

// mix spreads a number over all bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// tie returns the seed's order of a lane at a time.
func tie(seed uint64, at time.Duration, lane uint32) uint32 {
	return uint32(mix(seed^mix(uint64(at)<<20^uint64(lane))) >> 32)
}

// before returns 1 if an entry comes before another, and 0 otherwise. It avoids branches, because a processor could not
// predict them.
func (s *schedule) before(a, b *entry) int {
	if a.at == b.at && a.tie == b.tie {
		if s.orders[a.slot] < s.orders[b.slot] {
			return 1
		}
		return 0
	}
	_, borrow := bits.Sub64(uint64(a.tie), uint64(b.tie), 0)
	_, borrow = bits.Sub64(uint64(a.at), uint64(b.at), borrow)
	return int(borrow)
}

// add schedules an event. The caller sets its fields at once.
func (s *schedule) add(at time.Duration, lane uint32, k kind) *event {
	var slot uint32
	if n := len(s.free); n > 0 {
		slot = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		slot = uint32(len(s.slots))
		s.slots = append(s.slots, event{})
		s.orders = append(s.orders, 0)
	}
	s.ordered++
	s.orders[slot] = s.ordered
	e := &s.slots[slot]
	*e = event{kind: k}
	if len(s.heap) == 0 {
		s.heap = make([]entry, root, 64)
	}
	s.heap = append(s.heap, entry{})
	s.up(len(s.heap)-1, entry{at: at, tie: tie(s.seed, at, lane), slot: slot})
	return e
}

// next returns the time of the first event.
func (s *schedule) next() (at time.Duration, ok bool) {
	if len(s.heap) <= root {
		return 0, false
	}
	return s.heap[root].at, true
}

// take removes the first event. It belongs to the caller until giveBack of its slot.
func (s *schedule) take() (e *event, slot uint32) {
	slot = s.heap[root].slot
	last := len(s.heap) - 1
	moved := s.heap[last]
	s.heap = s.heap[:last]
	if last > root {
		s.down(moved)
	}
	return &s.slots[slot], slot
}

func (s *schedule) giveBack(slot uint32) { s.free = append(s.free, slot) }

func (s *schedule) up(i int, e entry) {
	for i > root {
		parent := i/4 + 2
		if s.before(&e, &s.heap[parent]) == 0 {
			break
		}
		s.heap[i] = s.heap[parent]
		i = parent
	}
	s.heap[i] = e
}

// down moves an entry down from the root.
func (s *schedule) down(e entry) {
	i := root
	for {
		least := 4 * (i - 2)
		switch heap := s.heap; {
		case least+4 <= len(heap):
			other := least + 2
			least += s.before(&heap[least+1], &heap[least])
			other += s.before(&heap[other+1], &heap[other])
			least += (other - least) * s.before(&heap[other], &heap[least])
		case least < len(heap):
			for other := least + 1; other < len(heap); other++ {
				least += (other - least) * s.before(&heap[other], &heap[least])
			}
		}
		if least >= len(s.heap) || s.before(&s.heap[least], &e) == 0 {
			break
		}
		s.heap[i] = s.heap[least]
		i = least
	}
	s.heap[i] = e
}
