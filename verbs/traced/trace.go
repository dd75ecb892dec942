package traced

import (
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// kind is what a record is of.
type kind uint8

const (
	// request is one of a send queue, received the completion of a receive.
	request kind = iota
	received
	// posted, polled, slept and computed are calls: PostSend, Poll, Sleep and Work.
	posted
	polled
	slept
	computed
	// spanned is of the program.
	spanned
	// missing tells that older ones are lost.
	missing
)

// A record is one thing that has happened.
type record struct {
	kind   kind
	opcode verbs.Opcode
	status verbs.Status
	// unfinished: it had not completed when the trace was written, or its queue pair was
	// closed. untold: nobody knows when it had.
	unfinished, untold bool
	// pair is the queue pair of a request, of a receive and of posted.
	pair        *queuePair
	from, until time.Duration
	// n is how many bytes it has, or how many requests, completions or sleeps.
	n int
	// id is the request's or the receive's; of missing it is how many are.
	id uint64
	// name is of spanned, and what are missing.
	name string
}

// A Trace is what a device has done. Its methods may be called from any goroutine.
type Trace struct {
	device *device
	// began is when the device's clock was zero.
	began time.Time

	mu    sync.Mutex
	rings [rings]ring
}

// A Trace keeps apart, in rings, what does not come equally often.
const (
	// ofRequests holds requests and received.
	ofRequests = iota
	ofCalls
	ofSpans
	rings
)

var ringNames = [rings]string{ofRequests: "requests", ofCalls: "calls", ofSpans: "spans"}

// A ring holds the last records: added of them there have been.
type ring struct {
	records []record
	added   uint64
}

// lost is how many of the oldest there is no place for any more.
func (r *ring) lost() uint64 {
	if n := uint64(len(r.records)); r.added > n {
		return r.added - n
	}
	return 0
}

// oldest is the first record that there is.
func (r *ring) oldest() *record { return &r.records[r.lost()%uint64(len(r.records))] }

// Began is the time of the system's clock when the device's own was zero, the zero time
// where the device's is virtual.
func (t *Trace) Began() time.Time { return t.began }

// Lost is how many records there is no place for any more.
func (t *Trace) Lost() (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.rings {
		n += t.rings[i].lost()
	}
	return n
}

// Span adds what the program did from one time of the device's Now to another.
func (t *Trace) Span(name string, from, until time.Duration) {
	t.add(record{kind: spanned, name: name, from: from, until: until})
}

func (t *Trace) add(r record) {
	which := ofCalls
	switch r.kind {
	case request, received:
		which = ofRequests
	case spanned:
		which = ofSpans
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	into := &t.rings[which]
	if r.kind == slept && into.prolong(&r) {
		return
	}
	into.records[into.added%uint64(len(into.records))] = r
	into.added++
}

// shortLook is the longest time between two sleeps that are told as one. Who waits looks
// in it and finds nothing.
const shortLook = 20 * time.Microsecond

// prolong has a sleep be a part of the last record, if that is one that was just over.
func (r *ring) prolong(s *record) bool {
	if r.added == 0 {
		return false
	}
	last := &r.records[(r.added-1)%uint64(len(r.records))]
	between := s.from - last.until
	if last.kind != slept || between < 0 || between > shortLook {
		return false
	}
	last.until = s.until
	last.n += s.n
	return true
}

// records are those that there are, what is outstanding, and one of each ring that has lost
// some.
func (t *Trace) records() (all []record) {
	now := t.device.Now()
	t.device.mu.RLock()
	for _, q := range t.device.pairs {
		all = q.outstanding(all, now)
	}
	t.device.mu.RUnlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for which := range t.rings {
		r := &t.rings[which]
		lost := r.lost()
		if lost > 0 {
			at := r.oldest().from
			all = append(all, record{kind: missing, name: ringNames[which], from: at, until: at, id: lost})
		}
		for i := lost; i < r.added; i++ {
			all = append(all, r.records[i%uint64(len(r.records))])
		}
	}
	return all
}

// Of is the trace of a device that New gave, and nil of any other.
func Of(d verbs.Device) *Trace {
	if of, ok := d.(interface{ traces() *Trace }); ok {
		return of.traces()
	}
	return nil
}

func (d *device) traces() *Trace { return d.trace }
