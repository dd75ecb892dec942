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
	// posted, polled and slept are calls: PostSend, Poll and Sleep.
	posted
	polled
	slept
	// spanned is of the program.
	spanned
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
	// n is how many bytes it has, or how many requests or completions.
	n  int
	id uint64
	// name is of spanned.
	name string
}

// A Trace is what a device has done. Its methods may be called from any goroutine.
type Trace struct {
	device *device
	// began is when the device's clock was zero.
	began time.Time

	mu sync.Mutex
	// ring holds the last records: added of them there have been.
	ring  []record
	added uint64
}

// Began is the time of the system's clock when the device's own was zero, the zero time
// where the device's is virtual.
func (t *Trace) Began() time.Time { return t.began }

// Lost is how many of the oldest records there is no place for any more.
func (t *Trace) Lost() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lost()
}

func (t *Trace) lost() uint64 {
	if n := uint64(len(t.ring)); t.added > n {
		return t.added - n
	}
	return 0
}

// Span adds what the program did from one time of the device's Now to another.
func (t *Trace) Span(name string, from, until time.Duration) {
	t.add(record{kind: spanned, name: name, from: from, until: until})
}

func (t *Trace) add(r record) {
	t.mu.Lock()
	t.ring[t.added%uint64(len(t.ring))] = r
	t.added++
	t.mu.Unlock()
}

// records are those that there are, and what is outstanding.
func (t *Trace) records() (all []record, lost uint64) {
	now := t.device.Now()
	t.device.mu.RLock()
	for _, q := range t.device.pairs {
		all = q.outstanding(all, now)
	}
	t.device.mu.RUnlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	lost = t.lost()
	for i := lost; i < t.added; i++ {
		all = append(all, t.ring[i%uint64(len(t.ring))])
	}
	return all, lost
}

// Of is the trace of a device that New gave, and nil of any other.
func Of(d verbs.Device) *Trace {
	if of, ok := d.(interface{ traces() *Trace }); ok {
		return of.traces()
	}
	return nil
}

func (d *device) traces() *Trace { return d.trace }
