package scheduler

import (
	"math/bits"
	"time"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/verbs"
)

// packing is the cost model of packing puts and gets instead of sending each by itself, in nanoseconds and nanoseconds
// per byte. Packing an operation
//
//   - saves the cost of an operation by itself;
//   - costs some copies;
//   - uses the wire in one direction and then in the other: the response, with the data read, leaves when the whole
//     message has arrived. Operations by themselves use both directions at once;
//   - saves the wait for the completion, if no operation goes by itself and nothing else is waited for: the buffer of a
//     packed operation belongs to the program again at once;
//   - costs a message, if none is sent otherwise.
type packing struct {
	single, copies, copied float64
	// oneWay is the time of a byte when the link carries data in one direction, bothWays when it does in both.
	oneWay, bothWays float64
	settled, message float64
	// most is the longest operation that is packed as one. Operations below sure are worth packing whatever the others
	// are, those below small on their own, and the only operation before a message below alone. An operation below
	// unregistered whose memory is not registered is worth a message of its own.
	most, sure, small, alone, unregistered int
	// atomics is set if the accumulate family always goes direct.
	atomics bool
}

// limits are the lengths, in bytes, below which puts and gets are packed.
type limits struct{ registered, unregistered int }

func (o *Operation) below(l limits) bool {
	return o.Bytes < l.registered || o.Unregistered && o.Bytes < l.unregistered
}

// copies is how often packed data is copied: into the packet, into the eager buffer, and out of it.
const copies = 3

// mostUnregistered bounds the length that is packed because its memory is not registered, in bytes.
const mostUnregistered = 1 << 20

func newPacking(c *verbs.Costs, unregistered func(bytes int) float64, most int) packing {
	w := packing{
		single: times(2, float64(c.Gap)), copies: times(copies, float64(c.CopyLatency)),
		settled: float64(c.Latency), message: float64(c.Serve), most: most,
	}
	per := func(bandwidth float64) float64 {
		if bandwidth <= 0 {
			return 0
		}
		return float64(time.Second) / bandwidth
	}
	w.copied, w.oneWay, w.bothWays = times(copies, per(c.CopyBandwidth)), per(c.Bandwidth), per(c.DuplexBandwidth)
	w.bothWays = min(w.bothWays, w.oneWay)
	upTo := func(saved, byte float64) int {
		switch saved -= w.copies; {
		case saved <= 0 || w.copied == 0:
			return 0
		case saved >= times(byte, float64(most)):
			return most
		}
		return int(saved / byte)
	}
	w.sure = upTo(w.single, w.copied+w.oneWay-w.bothWays)
	w.small = upTo(w.single, w.copied)
	w.alone = upTo(w.single+w.settled, w.copied)
	for bytes := 1; unregistered != nil && bytes <= mostUnregistered; bytes += max(bytes/8, 1) {
		// The operation may be cut into several packets, each of which needs a message.
		messages := float64((bytes + most - 1) / most)
		if w.single+unregistered(bytes) <= times(messages, w.copies+w.message)+times(float64(bytes), w.copied+w.oneWay-w.bothWays) {
			break
		}
		w.unregistered = bytes + 1
	}
	return w
}

// A bundle is a set of operations that might be packed.
type bundle struct{ count, puts, gets int }

func (b *bundle) add(o *Operation) {
	b.count++
	if o.Kind == aggregate.Put {
		b.puts += o.Bytes
	} else {
		b.gets += o.Bytes
	}
}

// saved returns what packing a bundle saves, without the cost of its message.
func (w *packing) saved(b *bundle) float64 {
	puts, gets := float64(b.puts), float64(b.gets)
	apart := max(times(max(puts, gets), w.oneWay), times(puts+gets, w.bothWays))
	return times(float64(b.count), w.single-w.copies) - times(puts+gets, w.copied) - (times(puts+gets, w.oneWay) - apart)
}

// times returns a product that is rounded before it is added to anything. Otherwise processors with fused multiply-add
// would decide differently where two ways cost the same.
func times(a, b float64) float64 { return float64(a * b) }

// share returns the cost of packing an operation of bytes, divided by the cost of the wait that packing saves.
func (w *packing) share(bytes int) float64 {
	if w.settled <= 0 {
		return 1
	}
	return max(w.copies+times(float64(bytes), w.copied)-w.single, 0) / w.settled
}

// limits returns the limits for the operations of a plan.
func (w *packing) limits(operations []Operation, following Following) limits {
	return limits{w.limit(operations, following), w.unregistered}
}

// goes reports whether an operation goes in a message whatever the others do.
func (w *packing) goes(o *Operation) bool {
	return !o.moves() && !w.apart(o) || o.Unregistered && o.Bytes < w.unregistered
}

// apart reports whether an operation goes direct whatever the others do.
func (w *packing) apart(o *Operation) bool { return w.atomics && o.combines() }

// limit returns the length below which puts and gets of registered memory are packed.
func (w *packing) limit(operations []Operation, following Following) int {
	message, settled, longest := w.message, 0.0, -1
	if following == Message || following == End {
		message = 0
	}
	if following == End || following == Local {
		settled = w.settled
	}
	for i := range operations {
		o := &operations[i]
		switch {
		case w.goes(o):
			message = 0
		case !w.apart(o):
			longest = max(longest, o.Bytes)
		}
		if w.apart(o) || following == Local && o.Reads() {
			// The direct operation or the read is waited for in any case.
			settled = 0
		}
	}
	if longest >= w.sure {
		return w.search(operations, settled, message, longest)
	}
	// Each operation is worth packing. Enough of them are worth a message.
	var some bundle
	for i := 0; message > 0; i++ {
		if i == len(operations) {
			return 0
		}
		if w.apart(&operations[i]) {
			continue
		}
		if some.add(&operations[i]); w.saved(&some)+settled > message {
			break
		}
	}
	return w.sure
}

// classes is the number of classes of operations, by the logarithm of their length.
const classes = 32

// search is limit where the result depends on all operations, the longest of which has longest bytes. It returns the
// best of the powers of two below small, small itself, and alone.
func (w *packing) search(operations []Operation, settled, message float64, longest int) int {
	var of [classes]bundle
	var rest bundle
	for i := range operations {
		switch o := &operations[i]; {
		case w.goes(o) || w.apart(o):
		case o.Bytes < w.small:
			of[bits.Len(uint(o.Bytes))].add(o)
		default:
			rest.add(o)
		}
	}
	best, limit := 0.0, 0
	var all bundle
	try := func(more *bundle, below int, settled float64) {
		all.count, all.puts, all.gets = all.count+more.count, all.puts+more.puts, all.gets+more.gets
		if value := w.saved(&all) + settled - message; all.count > 0 && value >= best {
			best, limit = value, below
		}
	}
	for class := range of {
		try(&of[class], min(1<<class, w.small), 0)
	}
	if settled > 0 && longest < w.alone {
		try(&rest, w.alone, settled)
	}
	return limit
}
