package traced

import (
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// kind is the kind of a record.
type kind uint8

const (
	// request is a request of a send queue, received the completion of a receive.
	request kind = iota
	received
	// posted, polled, slept and computed are calls: PostSend, Poll, Sleep and Work.
	posted
	polled
	slept
	computed
	// spanned is a span of the program.
	spanned
	// missing stands for lost older records.
	missing
)

// A record is an event.
type record struct {
	kind   kind
	opcode verbs.Opcode
	status verbs.Status
	// unfinished: it had not completed when the trace was written or its queue pair was closed. unknownEnd: the time of
	// its completion is unknown.
	unfinished, unknownEnd bool
	// pair is the queue pair of a request, a receive or a posted.
	pair        *queuePair
	from, until time.Duration
	// n is the number of bytes, or of requests, completions or sleeps.
	n int
	// id is the ID of the request or receive. For missing it is the number of lost records.
	id uint64
	// name is the name of a spanned, or the kind of lost records.
	name string
}

// A Trace is the record of what a device has done. Its methods may be called from any goroutine.
type Trace struct {
	device *device
	// began is the time at which the device's clock was zero.
	began time.Time

	mu    sync.Mutex
	rings [rings]ring
}

// A Trace has a ring for each kind of record, because they are not equally frequent.
const (
	// ofRequests holds request and received records.
	ofRequests = iota
	ofCalls
	ofSpans
	rings
)

var ringNames = [rings]string{ofRequests: "requests", ofCalls: "calls", ofSpans: "spans"}

// A ring holds the last records. added counts all that were added.
type ring struct {
	records []record
	added   uint64
}

// lost returns the number of lost records.
func (r *ring) lost() uint64 {
	if n := uint64(len(r.records)); r.added > n {
		return r.added - n
	}
	return 0
}

// oldest returns the oldest record that is kept.
func (r *ring) oldest() *record { return &r.records[r.lost()%uint64(len(r.records))] }

// Began returns the time of the system's clock at which the device's clock was zero. It is the zero time if the device
// is in virtual time.
func (t *Trace) Began() time.Time { return t.began }

// Lost returns the number of lost records.
func (t *Trace) Lost() (n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.rings {
		n += t.rings[i].lost()
	}
	return n
}

// Span adds a span of the program, between two times of the device's Now.
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
	if r.kind == slept && into.extend(&r) {
		return
	}
	into.records[into.added%uint64(len(into.records))] = r
	into.added++
}

// shortLook is the longest time between two sleeps that are recorded as one. In it the sleeper polls and finds nothing.
const shortLook = 20 * time.Microsecond

// extend makes a sleep part of the last record, if that is a sleep that has just ended.
func (r *ring) extend(s *record) bool {
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

// records returns the records that are kept, the outstanding requests, and a missing record for each ring that has lost
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

// Of returns the trace of a device that New returned, and nil for any other device.
func Of(d verbs.Device) *Trace {
	if of, ok := d.(interface{ traces() *Trace }); ok {
		return of.traces()
	}
	return nil
}

func (d *device) traces() *Trace { return d.trace }
