package traced

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

// A send is an outstanding request of a send queue.
type send struct {
	from      time.Duration
	id        uint64
	n         int
	opcode    verbs.Opcode
	signalled bool
	// over: it has completed before an earlier one, or was not taken.
	over bool
}

// queuePair records posted requests.
type queuePair struct {
	verbs.QueuePair
	device *device
	// peer is the name of the peer.
	peer atomic.Pointer[string]

	mu sync.Mutex
	// sends is a ring whose length is a power of two. It has count outstanding requests from number first on, in the
	// order of posting.
	sends []send
	first uint64
	count int
}

// severable is a queuePair that implements verbs.Severer.
type severable struct {
	*queuePair
	verbs.Severer
}

// adopt wraps a queue pair of the inner device.
func (d *device) adopt(inner verbs.QueuePair, peer string) verbs.QueuePair {
	q := &queuePair{QueuePair: inner, device: d, sends: make([]send, 8)}
	q.peer.Store(&peer)
	d.mu.Lock()
	d.pairs[inner.Number()] = q
	d.mu.Unlock()
	if severer, ok := inner.(verbs.Severer); ok {
		return &severable{q, severer}
	}
	return q
}

// Name sets the name of a queue pair's peer in the trace. By default it is the address that was connected to, if known.
// Name does nothing for a queue pair that is not traced.
func Name(pair verbs.QueuePair, peer string) {
	if q, ok := pair.(interface{ name(peer string) }); ok {
		q.name(peer)
	}
}

func (q *queuePair) name(peer string) { q.peer.Store(&peer) }

// PostSend posts to the inner queue pair. Requests are recorded before that, because they may complete before it
// returns.
func (q *queuePair) PostSend(requests []verbs.SendRequest) (int, error) {
	from := q.device.Now()
	number := q.reserve(requests, from)
	n, err := q.QueuePair.PostSend(requests)
	if n < len(requests) {
		q.release(number+uint64(n), len(requests)-n)
	}
	if n > 0 {
		q.device.trace.add(record{kind: posted, opcode: requests[0].Opcode, pair: q, from: from, until: q.device.Now(), n: n})
	}
	return n, err
}

func (q *queuePair) at(number uint64) *send { return &q.sends[number&uint64(len(q.sends)-1)] }

// reserve records requests, and returns the number of the first.
func (q *queuePair) reserve(requests []verbs.SendRequest, from time.Duration) (number uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.count+len(requests) > len(q.sends) {
		larger := make([]send, 2*len(q.sends))
		for i := range uint64(q.count) {
			larger[(q.first+i)&uint64(len(larger)-1)] = *q.at(q.first + i)
		}
		q.sends = larger
	}
	number = q.first + uint64(q.count)
	for i := range requests {
		r := &requests[i]
		n := 0
		for k := range r.Segments {
			n += len(r.Segments[k].Memory)
		}
		*q.at(number + uint64(i)) = send{from: from, id: r.ID, n: n, opcode: r.Opcode, signalled: r.Flags&verbs.Signalled != 0}
	}
	q.count += len(requests)
	return number
}

// release drops requests that were not taken.
func (q *queuePair) release(number uint64, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uint64(n) {
		q.at(number + i).over = true
	}
	q.trim()
}

// trim removes requests that are over at both ends.
func (q *queuePair) trim() {
	for q.count > 0 && q.at(q.first).over {
		q.first++
		q.count--
	}
	for q.count > 0 && q.at(q.first+uint64(q.count)-1).over {
		q.count--
	}
}

// completed records a completion, which also covers unsignalled requests before it.
func (q *queuePair) completed(c *verbs.Completion, at time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uint64(q.count) {
		s := q.at(q.first + i)
		if s.over || s.id != c.ID || s.opcode != c.Opcode || !s.signalled && c.Status == verbs.StatusSuccess {
			continue
		}
		for before := range i {
			if earlier := q.at(q.first + before); !earlier.over && !earlier.signalled {
				q.finish(earlier, record{until: at, unknownEnd: s.from-earlier.from > at-s.from})
			}
		}
		q.finish(s, record{until: at, status: c.Status})
		break
	}
	q.trim()
}

// finish makes a record of a request that is over; r has its end.
func (q *queuePair) finish(s *send, r record) {
	s.over = true
	q.device.trace.add(s.record(q, r))
}

func (s *send) record(q *queuePair, r record) record {
	r.kind, r.opcode, r.pair, r.from, r.n, r.id = request, s.opcode, q, s.from, s.n, s.id
	return r
}

// without returns the end of a request whose completion has not been polled.
func (s *send) without(now time.Duration) record {
	return record{until: now, unfinished: s.signalled, unknownEnd: !s.signalled}
}

// outstanding appends records of the outstanding requests.
func (q *queuePair) outstanding(to []record, now time.Duration) []record {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uint64(q.count) {
		if s := q.at(q.first + i); !s.over {
			to = append(to, s.record(q, s.without(now)))
		}
	}
	return to
}

// abandon makes records of the requests whose completions cannot be polled any more.
func (q *queuePair) abandon(now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range uint64(q.count) {
		if s := q.at(q.first + i); !s.over {
			q.finish(s, s.without(now))
		}
	}
	q.count = 0
}

// Close closes the inner queue pair. Its number may be reused then.
func (q *queuePair) Close() error {
	d, number, now := q.device, q.Number(), q.device.Now()
	d.mu.Lock()
	if d.pairs[number] == q {
		delete(d.pairs, number)
		q.abandon(now)
	}
	d.mu.Unlock()
	return q.QueuePair.Close()
}
