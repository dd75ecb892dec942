package sim

import "time"

// kind says what an event does.
type kind uint8

const (
	// evLaunch: the card looks again for requests of a queue pair's send queue.
	evLaunch kind = iota
	// evPort: the way out of a card is free again.
	evPort
	// evArrive and evReturn: the first byte of a piece of a request, or of an answer
	// with data, is at the other card.
	evArrive
	evReturn
	// evPlaced and evReturned: the last byte has been placed.
	evPlaced
	evReturned
	// evAnswer: the responder has worked out the answer to a read or an atomic.
	evAnswer
	// evAcknowledged: the requester learns how a request ended that brings no data.
	evAcknowledged
	// evResume: a sender that found no receive tries again.
	evResume
	// evKnock, evAccepted, evRefused: a connection is asked for, and answered.
	evKnock
	evAccepted
	evRefused
	// evParted: the other end of a connection has failed or was closed.
	evParted
	// evDeath: a device that is watched is closed.
	evDeath
	// evRing: a task ran ahead of the clock when it rang.
	evRing
	// evFault and evHealed: something breaks, or is whole again.
	evFault
	evHealed
	// evRelease: what a fault has held before the way in of a card may enter.
	evRelease
	// evGiveUp: a queue pair may have waited for an answer for too long; evExhausted: it
	// has tried too often to find a receive.
	evGiveUp
	evExhausted
)

// An event is what the card does at a time. The fields that a kind uses are those that
// its handler reads.
type event struct {
	kind   kind
	status uint8
	last   bool
	epoch  uint32
	pair   *queuePair
	device *Device
	what   any
	number uint64
	offset int
	bytes  int
	until  time.Duration
}

// An entry orders an event: by time, then by a number drawn from the seed, the time and
// the lane, then by when it was scheduled. What shares a lane, as the messages of one
// direction of a connection do, therefore never changes its order; whatever else happens
// at one time is permuted by the seed.
type entry struct {
	at    time.Duration
	order uint64
	tie   uint32
	slot  uint32
}

func (a *entry) before(b *entry) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.order < b.order
}

// A schedule holds the events to come, in a heap of four children a node over entries
// without pointers. Slots are used again.
type schedule struct {
	seed    uint64
	heap    []entry
	slots   []event
	free    []uint32
	ordered uint64
}

// mix spreads a number over all bits (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// tie is the seed's order of a lane at a time.
func tie(seed uint64, at time.Duration, lane uint32) uint32 {
	return uint32(mix(seed^mix(uint64(at)<<20^uint64(lane))) >> 32)
}

// add schedules an event, whose fields are the caller's to fill in at once.
func (s *schedule) add(at time.Duration, lane uint32, k kind) *event {
	var slot uint32
	if n := len(s.free); n > 0 {
		slot = s.free[n-1]
		s.free = s.free[:n-1]
	} else {
		slot = uint32(len(s.slots))
		s.slots = append(s.slots, event{})
	}
	s.ordered++
	s.heap = append(s.heap, entry{})
	s.up(len(s.heap)-1, entry{at: at, order: s.ordered, tie: tie(s.seed, at, lane), slot: slot})
	e := &s.slots[slot]
	e.kind = k
	return e
}

// next is the time of the first event.
func (s *schedule) next() (at time.Duration, ok bool) {
	if len(s.heap) == 0 {
		return 0, false
	}
	return s.heap[0].at, true
}

// take removes the first event.
func (s *schedule) take() (at time.Duration, e event) {
	first := s.heap[0]
	last := len(s.heap) - 1
	moved := s.heap[last]
	s.heap = s.heap[:last]
	if last > 0 {
		s.down(moved)
	}
	e = s.slots[first.slot]
	s.slots[first.slot] = event{}
	s.free = append(s.free, first.slot)
	return first.at, e
}

func (s *schedule) up(i int, e entry) {
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(&s.heap[parent]) {
			break
		}
		s.heap[i] = s.heap[parent]
		i = parent
	}
	s.heap[i] = e
}

// down puts an entry where the first was.
func (s *schedule) down(e entry) {
	i := 0
	for {
		least := 4*i + 1
		if least >= len(s.heap) {
			break
		}
		for child := least + 1; child < min(4*i+5, len(s.heap)); child++ {
			if s.heap[child].before(&s.heap[least]) {
				least = child
			}
		}
		if !s.heap[least].before(&e) {
			break
		}
		s.heap[i] = s.heap[least]
		i = least
	}
	s.heap[i] = e
}
