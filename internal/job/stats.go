package job

import (
	"time"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/verbs"
)

// Stats are what a rank has done in a World, so far: what programs do without calls, to memory that they map, is not
// among it. What windows have done window.Stats tells.
type Stats struct {
	// Rank and Size are those of the World, Failures how many ranks are known to have failed.
	Rank, Size, Failures int
	// Routes counts the other ranks by the way in which this one reaches them: see Route.
	Routes map[string]int
	// Collectives are those that have ended, barriers included.
	Collectives uint64
	// Messages are those that left over links; several go together. Writes, Reads and Atomics are the requests of
	// operations that go direct, Sends those of messages.
	Messages, Sends, Writes, Reads, Atomics uint64
	// Bytes are of the payload of all of them.
	Bytes uint64
	// Sleeps counts how often a call of any World of the rank slept, Slept how long in all.
	Sleeps uint64
	Slept  time.Duration
	// Transfers tell of memory that the network card had to be told of.
	Transfers registration.Transfers
}

// Transfers returns how memory that the program had not registered got to the network card. It is zero if the card needs no keys.
func (w *World) Transfers() registration.Transfers {
	if c := w.cards[networkCard]; c != nil {
		return c.memory.Transfers()
	}
	return registration.Transfers{}
}

// Stats returns counts of what this rank has done in the World so far.
func (w *World) Stats() Stats {
	sleeps, slept := w.engine.Sleeps()
	s := Stats{
		Rank: w.rank, Size: w.size, Failures: int(w.FailureCount()), Routes: make(map[string]int),
		Collectives: uint64(w.calls.Load()), Sleeps: sleeps, Slept: slept, Transfers: w.Transfers(),
	}
	for rank := range w.size {
		if rank != w.rank {
			s.Routes[w.Route(rank)]++
		}
		for _, l := range [...]*Link{w.links[rank].Load(), w.cardLinks[rank].Load()} {
			if l != nil {
				l.addTo(&s)
			}
		}
	}
	return s
}

// linkCounts are what left over a link. The mutex of that guards them.
type linkCounts struct {
	requests [verbs.OpCompareSwap + 1]uint64
	messages uint64
	bytes    uint64
}

func (l *Link) addTo(s *Stats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Messages += l.counts.messages
	s.Bytes += l.counts.bytes
	for opcode, n := range l.counts.requests {
		switch verbs.Opcode(opcode) {
		case verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate:
			s.Writes += n
		case verbs.OpRDMARead:
			s.Reads += n
		case verbs.OpCompareSwap, verbs.OpFetchAdd:
			s.Atomics += n
		default:
			s.Sends += n
		}
	}
}

// issued counts what links were given so far.
func (w *World) issued() (n uint64) {
	for rank := range w.size {
		for _, l := range [...]*Link{w.links[rank].Load(), w.cardLinks[rank].Load()} {
			if l != nil {
				n += l.issued()
			}
		}
	}
	return n
}

func (l *Link) issued() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.counts.messages
	for _, requests := range l.counts.requests {
		n += requests
	}
	return n
}
