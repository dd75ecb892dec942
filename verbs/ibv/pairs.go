//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// The ID of a request, as the card knows it, names its queue pair and its index in the ring:
//
//	63     it is a receive
//	40-62  generation of the slot
//	24-39  slot of the queue pair in the device's table
//	 0-23  index in the ring, or one of the marks
//
// Completions of a destroyed queue pair have an earlier generation, and are not taken for another's.
const (
	receiveBit = 1 << 63
	placeBits  = 24
	slotBits   = 16
	placeMask  = 1<<placeBits - 1
	// markPlace is the index of the request that is flushed last, fencePlace that of a request that completes before a
	// fence.
	markPlace      = placeMask
	fencePlace     = placeMask - 1
	slots          = 1 << slotBits
	pageSlots      = 256
	generationMask = 1<<(63-placeBits-slotBits) - 1
	identityMask   = 1<<63 - 1<<placeBits
)

// pairTable holds the queue pairs of a device. It is read without a lock.
type pairTable struct {
	pages [slots / pageSlots]atomic.Pointer[[pageSlots]atomic.Pointer[queuePair]]

	mu         sync.Mutex
	free       []int
	used       int
	generation uint64
}

// add assigns a queue pair its identity.
func (t *pairTable) add(q *queuePair) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		q.slot, t.free = t.free[n-1], t.free[:n-1]
	} else if t.used < slots {
		q.slot = t.used
		t.used++
	} else {
		return fmt.Errorf("the device has %d queue pairs already", slots)
	}
	t.generation = (t.generation + 1) & generationMask
	q.identity = t.generation<<(placeBits+slotBits) | uint64(q.slot)<<placeBits
	page := &t.pages[q.slot/pageSlots]
	if page.Load() == nil {
		page.Store(new([pageSlots]atomic.Pointer[queuePair]))
	}
	page.Load()[q.slot%pageSlots].Store(q)
	return nil
}

// remove removes a queue pair.
func (t *pairTable) remove(q *queuePair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pages[q.slot/pageSlots].Load()[q.slot%pageSlots].Store(nil)
	t.free = append(t.free, q.slot)
}

// of returns the queue pair of a request's ID, or nil if that is gone.
func (t *pairTable) of(id uint64) *queuePair {
	slot := id >> placeBits % slots
	page := t.pages[slot/pageSlots].Load()
	if page == nil {
		return nil
	}
	q := page[slot%pageSlots].Load()
	if q == nil || q.identity != id&identityMask {
		return nil
	}
	return q
}

// all returns the current queue pairs.
func (t *pairTable) all() (all []*queuePair) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for slot := range t.used {
		if q := t.pages[slot/pageSlots].Load()[slot%pageSlots].Load(); q != nil {
			all = append(all, q)
		}
	}
	return all
}

// complete translates a completion of the card. It returns false if its queue pair is gone.
func (d *device) complete(c *completions, i int, into *verbs.Completion) bool {
	id := c.id(i)
	q := d.pairs.of(id)
	if q == nil {
		return false
	}
	place, status := id&placeMask, c.status(i)
	if id&receiveBit != 0 {
		return q.received(c, i, place, status, into)
	}
	switch {
	case place == markPlace:
		q.sending.drained.Store(true)
		return false
	case place == fencePlace && status == verbs.StatusSuccess:
		q.passed()
		return false
	case place == fencePlace:
		q.ended(c, i, status, "a fence")
		return false
	}
	e, ok := q.sending.finish(place)
	if !ok || status == verbs.StatusSuccess && !e.signalled {
		return false
	}
	switch {
	case status == verbs.StatusRemoteOperation && e.opcode <= verbs.OpSendImmediate:
		// Receives are checked when they are posted. So what the peer cannot execute is a message longer than its
		// receive, which some cards report in this way.
		status = verbs.StatusRemoteInvalid
	case c.isLocal(i) && d.portDown():
		// The request has not left, and its segments are not the reason.
		status = verbs.StatusRetryExceeded
	}
	*into = verbs.Completion{ID: e.id, QueuePair: q.number, Status: status, Opcode: e.opcode}
	if status != verbs.StatusSuccess {
		q.ended(c, i, status, fmt.Sprintf("request %#x (opcode %d)", e.id, e.opcode))
	}
	return true
}

func (q *queuePair) received(c *completions, i int, place uint64, status verbs.Status, into *verbs.Completion) bool {
	e, ok := q.receiving.finish(place)
	if !ok {
		return false
	}
	*into = verbs.Completion{ID: e.id, QueuePair: q.number, Status: status, Opcode: verbs.OpReceive}
	if status == verbs.StatusSuccess {
		into.Opcode = c.received(i)
		into.Bytes, into.Immediate = c.bytes(i), c.immediate(i)
		return true
	}
	into.Status = c.receiveStatus(i)
	q.ended(c, i, into.Status, fmt.Sprintf("receive %#x", e.id))
	return true
}

// ended fails the queue pair because of a completion.
func (q *queuePair) ended(c *completions, i int, status verbs.Status, what string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.fail(fmt.Errorf("ibv: %s: queue pair %#x: %s: %w (the card says %s, vendor error %#x)%s",
		q.device.name, q.number, what, status, c.name(i), c.vendor(i), q.device.portText()))
}
