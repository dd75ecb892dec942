package scheduler

import (
	"slices"

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
	// Unregistered tells that the card does not know Origin or Result, so that it takes longer to
	// go by RDMA: it has to be known of a Put or Get when it is planned.
	Unregistered bool
	// Run, if it is not 0, tells that this is a run: so many accumulates of one element each, of the
	// same Op and Element, that were called one behind the other. The queue has what they are
	// (Queue.Run). Bytes is what all of them touch, and Offset and Value are of no account.
	Run int32
	// words is where in the queue's words a run begins.
	words int32
	// Bytes is how many of the window it touches, from Offset on.
	Bytes  int
	Offset uint64
	// Origin is what is written, of a Put, or a longer operand. Result is where what is read
	// goes.
	Origin, Result *byte
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
	// count is how many operations there are, those of runs one by one.
	count int
	// words are the runs': an offset and an operand for each accumulate. growing tells that the
	// last of the Operations is a run that more may be added to.
	words   []uint64
	growing bool
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
	q.count++
	q.growing = false
	o := &q.Operations[len(q.Operations)-1]
	o.Kind, o.Bytes = kind, bytes
	return o
}

// Accumulate adds an accumulate of one element of so many bytes, at most a word, as part of a run: that
// with which the queue ends, or a new one. The operand begins with the element and is zero behind it, as memory.
// So many small accumulates take little memory, and are packed as fast as it is copied.
func (q *Queue) Accumulate(op reduce.Op, element reduce.Kind, bytes int, offset, operand uint64) {
	if q.growing {
		if o := &q.Operations[len(q.Operations)-1]; o.Op == op && o.Element == element {
			o.Run++
			o.Bytes += bytes
			q.count++
			q.words = append(q.words, offset, operand)
			return
		}
	}
	o := q.Add(aggregate.Accumulate, bytes)
	o.Op, o.Element, o.Run, o.words = op, element, 1, int32(len(q.words))
	q.words = append(q.words, offset, operand)
	q.growing = true
}

// Accumulates adds so many accumulates at once, as part of a run, and gives the places of their offsets and operands, by
// turns: see Accumulate, and Run.
func (q *Queue) Accumulates(op reduce.Op, element reduce.Kind, bytes, count int) []uint64 {
	first := len(q.words)
	q.words = slices.Grow(q.words, 2*count)[:first+2*count]
	if q.growing {
		if o := &q.Operations[len(q.Operations)-1]; o.Op == op && o.Element == element {
			o.Run += int32(count)
			o.Bytes += bytes * count
			q.count += count
			return q.words[first:]
		}
	}
	o := q.Add(aggregate.Accumulate, bytes*count)
	o.Op, o.Element, o.Run, o.words = op, element, int32(count), int32(first)
	q.count += count - 1
	q.growing = true
	return q.words[first:]
}

// Run is the accumulates of a run of the queue: the offset and the operand of each, by turns.
func (q *Queue) Run(o *Operation) []uint64 { return q.words[o.words:][:2*o.Run] }

// EndRun has no more added to the run with which the queue ends.
func (q *Queue) EndRun() { q.growing = false }

// Len is how many operations there are, those of runs one by one.
func (q *Queue) Len() int { return q.count }

// mostQueued bounds a queue that nobody starts.
const mostQueued = 1 << 14

// Full tells whether no more should be added before what is there has been sent.
func (q *Queue) Full() bool { return q.count >= mostQueued }

// Drop forgets the first n of the Operations, and their buffers.
func (q *Queue) Drop(n int) {
	words := int32(0)
	for i := range q.Operations[:n] {
		o := &q.Operations[i]
		q.dropped.kinds |= 1 << o.Kind
		if o.moves() {
			q.bytes -= o.Bytes
			q.dropped.add(o.Kind, o.Bytes)
		}
		words += 2 * o.Run
		count := max(int(o.Run), 1)
		q.count -= count
		q.dropped.operations += count
	}
	left := copy(q.Operations, q.Operations[n:])
	clear(q.Operations[left:])
	q.Operations = q.Operations[:left]
	q.growing = q.growing && left > 0
	if words > 0 {
		q.words = q.words[:copy(q.words, q.words[words:])]
		for i := range q.Operations {
			q.Operations[i].words -= min(words, q.Operations[i].words)
		}
	}
}
