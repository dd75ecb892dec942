//go:build ibverbs && cgo && linux

package ibv

import (
	"math/bits"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// A ring holds the requests of one kind that a queue pair has taken and whose completions have not been polled, oldest
// first. The card has those before given. The rest waits until the queue pair is connected, or is flushed.
//
// The queue pair's mutex is held to move tail and given, and that of the completion queue to move head. An entry is
// written before tail passes it, and read before head does.
type ring struct {
	entries           []entry
	mask              uint64
	most              uint64
	head, tail, given atomic.Uint64
	// drained: the card will complete nothing more of the ring.
	drained atomic.Bool
}

type entry struct {
	id        uint64
	opcode    verbs.Opcode
	signalled bool
}

func newRing(most int) ring {
	n := uint64(1) << bits.Len64(uint64(most-1))
	return ring{entries: make([]entry, n), mask: n - 1, most: uint64(most)}
}

// full reports whether there is no room for another request.
func (r *ring) full() bool { return r.tail.Load()-r.head.Load() >= r.most }

// put adds an entry, for which there is room, and returns its number. The low bits of the number are its index.
func (r *ring) put(e entry) (number uint64) {
	number = r.tail.Load()
	r.entries[number&r.mask] = e
	r.tail.Store(number + 1)
	return number
}

// finish removes the entry at an index and those before it, which its completion covers. It returns false if there is
// none.
func (r *ring) finish(place uint64) (entry, bool) {
	head := r.head.Load()
	at := head + (place-head)&r.mask
	if at >= r.tail.Load() {
		return entry{}, false
	}
	e := r.entries[place&r.mask]
	r.head.Store(at + 1)
	return e, true
}

// flush removes the oldest entry of a drained ring. It returns false if there is none. Entries that the card had and
// has not reported have succeeded and were unsignalled.
func (r *ring) flush() (entry, bool) {
	head := max(r.head.Load(), r.given.Load())
	if head == r.tail.Load() {
		r.head.Store(head)
		return entry{}, false
	}
	e := r.entries[head&r.mask]
	r.head.Store(head + 1)
	return e, true
}

// abandon makes this package flush everything that the card has not reported, because it reports nothing any more.
func (r *ring) abandon() {
	r.given.Store(0)
	r.drained.Store(true)
}
