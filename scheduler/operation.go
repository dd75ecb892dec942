package scheduler

import (
	"slices"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// An Operation is a record of the queue: an operation on bytes of the target's window. The record copies no data except
// operands of accumulates of at most len(Value) words. These belong to the program again when its call returns.
type Operation struct {
	Kind    aggregate.Kind
	Op      reduce.Op
	Element reduce.Kind
	// Unregistered reports that Origin or Result is not registered with the card, so that RDMA takes longer. It must be
	// set before a Put or Get is planned.
	Unregistered bool
	// Run, if it is not 0, makes this record a run: Run accumulates of one element each, of the same Op and Element,
	// called one after the other. [Queue.Run] returns their offsets and operands. Bytes is what all of them touch.
	// Offset and Value are unused.
	Run int32
	// words is the index in the queue's words at which the run begins.
	words int32
	// Bytes is the number of bytes of the window that the operation touches, from Offset on.
	Bytes  int
	Offset uint64
	// Origin is the data of a Put, or an operand longer than Value. Result is where the data read is stored.
	Origin, Result *byte
	// Value is the operand of an Accumulate or Fetch that fits it, or the two operands of a Swap.
	Value [4]uint64
}

// Reads reports whether the operation has a result.
func (o *Operation) Reads() bool {
	return o.Kind == aggregate.Get || o.Kind == aggregate.Fetch || o.Kind == aggregate.Swap
}

// moves reports whether the operation may use RDMA instead of a message.
func (o *Operation) moves() bool { return o.Kind == aggregate.Put || o.Kind == aggregate.Get }

// combines reports whether the operation is of the accumulate family.
func (o *Operation) combines() bool {
	return o.Kind == aggregate.Accumulate || o.Kind == aggregate.Fetch || o.Kind == aggregate.Swap
}

// A Queue holds the unsent operations on one target, in program order. It reuses its memory. It must not be used by
// several goroutines at once.
type Queue struct {
	Operations []Operation
	// count is the number of operations, counting each of a run.
	count int
	// words holds an offset and an operand for each accumulate of the runs. growing is set if the last of the
	// Operations is a run to which accumulates may be added.
	words   []uint64
	growing bool
	// bytes is the number of bytes of the operations that may use RDMA.
	bytes int
	// dropped counts the operations dropped since an epoch ended.
	dropped counts
}

// Add adds a record and returns it. Add sets Kind and Bytes; the caller sets the rest. The pointer is valid until the
// next call that adds to the queue.
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

// Accumulate adds an accumulate to the run at the end of the queue, or to a new run. It has one element of the given
// number of bytes, at most a word. operand holds the element in its first bytes in memory order, and zeroes after it.
// So many small accumulates take little memory, and packing them is as fast as copying.
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

// Accumulates adds count accumulates to a run, as Accumulate does, and returns the memory for their offsets and
// operands, alternately. The caller fills it.
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

// Run returns the accumulates of a run of the queue: the offset and the operand of each, alternately.
func (q *Queue) Run(o *Operation) []uint64 { return q.words[o.words:][:2*o.Run] }

// EndRun ends the run at the end of the queue: later accumulates begin a new one.
func (q *Queue) EndRun() { q.growing = false }

// Len returns the number of operations, counting each of a run.
func (q *Queue) Len() int { return q.count }

// mostQueued bounds a queue whose operations are not started.
const mostQueued = 1 << 14

// Full reports whether the queue should be sent before more operations are added.
func (q *Queue) Full() bool { return q.count >= mostQueued }

// Drop removes the first n of the Operations, and the references to their buffers.
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
