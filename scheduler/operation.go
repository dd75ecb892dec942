package scheduler

import (
	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// An Operation is a record of the queue: what is to be done with which bytes of the target's
// window. It copies no data but the operands of accumulates that are at most len(Value)
// words, which are the program's own again when its call returns.
type Operation struct {
	Kind    aggregate.Kind
	Op      reduce.Op
	Element reduce.Kind
	// Bytes is how many of the window it touches, from Offset on.
	Bytes  int
	Offset uint64
	// Origin is what is written, of a Put, or a longer operand. Result is where what is read
	// goes.
	Origin, Result *byte
	// Unregistered tells that the card does not know that memory, so that it takes longer to
	// go by RDMA: it has to be known of a Put or Get when it is planned.
	Unregistered bool
	// Value is the operand of an Accumulate or Fetch of at most so many words, or the two of a
	// Swap.
	Value [4]uint64
}

// Reads tells whether the operation has a result.
func (o *Operation) Reads() bool {
	return o.Kind == aggregate.Get || o.Kind == aggregate.Fetch || o.Kind == aggregate.Swap
}

// moves tells whether it may go without a message: by RDMA.
func (o *Operation) moves() bool { return o.Kind == aggregate.Put || o.Kind == aggregate.Get }

// combines tells whether it is of the accumulate family.
func (o *Operation) combines() bool {
	return o.Kind == aggregate.Accumulate || o.Kind == aggregate.Fetch || o.Kind == aggregate.Swap
}

// A Queue holds the operations on one target that were not sent, in program order. Its
// memory is reused; it is not for several goroutines at once.
type Queue struct {
	Operations []Operation
	// bytes is how many those touch that may go by RDMA.
	bytes int
	// dropped is what was, since an epoch ended.
	dropped counts
}

// Add gives the record of a new operation, which the caller fills, but for its Bytes.
func (q *Queue) Add(kind aggregate.Kind, bytes int) *Operation {
	if n := len(q.Operations); n < cap(q.Operations) {
		q.Operations = q.Operations[:n+1]
	} else {
		q.Operations = append(q.Operations, Operation{})
	}
	if kind == aggregate.Put || kind == aggregate.Get {
		q.bytes += bytes
	}
	o := &q.Operations[len(q.Operations)-1]
	o.Kind, o.Bytes = kind, bytes
	return o
}

// mostQueued bounds a queue that nobody starts.
const mostQueued = 1 << 14

// Full tells whether no more should be added before what is there has been sent.
func (q *Queue) Full() bool { return len(q.Operations) >= mostQueued }

// Drop forgets the first n operations, and their buffers.
func (q *Queue) Drop(n int) {
	for i := range q.Operations[:n] {
		o := &q.Operations[i]
		q.dropped.kinds |= 1 << o.Kind
		if o.moves() {
			q.bytes -= o.Bytes
			q.dropped.add(o.Kind, o.Bytes)
		}
	}
	q.dropped.operations += n
	left := copy(q.Operations, q.Operations[n:])
	clear(q.Operations[left:])
	q.Operations = q.Operations[:left]
}
