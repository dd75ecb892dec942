package scheduler

import (
	"math/bits"
	"time"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/verbs"
)

// worth is what it is worth, and costs, to pack puts and gets instead of having each go by
// itself, in nanoseconds and for each byte. What is packed
//
//   - saves what an operation costs that goes by itself;
//   - is copied some times;
//   - crosses the wire in one direction and then in the other: the answer, with what gets read,
//     leaves when all of the message is there. What goes by itself uses both at once;
//   - where nothing goes by itself, and nothing else is waited for, saves the wait for the news
//     that what went has come: what is packed is the program's again at once;
//   - needs a message, if none goes otherwise.
type worth struct {
	single, copies, copied float64
	// oneWay is a byte's share of the link in one direction, bothWays of both.
	oneWay, bothWays float64
	settled, message float64
	// most is the longest operation that is packed as one. sure is up to how many bytes each
	// is worth packing whatever the others are, small is that for one alone, and alone that
	// for one behind which a message goes, and which is the only one. Below unregistered one whose
	// memory the card does not know is worth a message of its own.
	most, sure, small, alone, unregistered int
	// atomics tells that the accumulate family goes direct whatever becomes of the others.
	atomics bool
}

// limits are below how many bytes puts and gets are packed.
type limits struct{ registered, unregistered int }

func (o *Operation) below(l limits) bool {
	return o.Bytes < l.registered || o.Unregistered && o.Bytes < l.unregistered
}

// copies is how often what is packed is copied: into the packet, into the letter, and out of it.
const copies = 3

// mostUnregistered bounds what is packed because the card does not know it, in bytes.
const mostUnregistered = 1 << 20

func newWorth(c *verbs.Costs, unknown func(bytes int) float64, most int) worth {
	w := worth{
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
	for bytes := 1; unknown != nil && bytes <= mostUnregistered; bytes += max(bytes/8, 1) {
		// It may be cut into several packets, each of which needs a message.
		messages := float64((bytes + most - 1) / most)
		if w.single+unknown(bytes) <= times(messages, w.copies+w.message)+times(float64(bytes), w.copied+w.oneWay-w.bothWays) {
			break
		}
		w.unregistered = bytes + 1
	}
	return w
}

// A bundle is operations that might be packed.
type bundle struct{ count, puts, gets int }

func (b *bundle) add(o *Operation) {
	b.count++
	if o.Kind == aggregate.Put {
		b.puts += o.Bytes
	} else {
		b.gets += o.Bytes
	}
}

// of is what it is worth to pack a bundle, but for its message.
func (w *worth) of(b *bundle) float64 {
	puts, gets := float64(b.puts), float64(b.gets)
	apart := max(times(max(puts, gets), w.oneWay), times(puts+gets, w.bothWays))
	return times(float64(b.count), w.single-w.copies) - times(puts+gets, w.copied) - (times(puts+gets, w.oneWay) - apart)
}

// times is a product that is rounded before it is added to anything: processors that have an
// instruction for both together would decide otherwise where two ways cost the same.
func times(a, b float64) float64 { return float64(a * b) }

// share is the cost of packing an operation of so many bytes, divided by that of the wait which it saves.
func (w *worth) share(bytes int) float64 {
	if w.settled <= 0 {
		return 1
	}
	return max(w.copies+times(float64(bytes), w.copied)-w.single, 0) / w.settled
}

// limits are those of the operations of a plan.
func (w *worth) limits(operations []Operation, behind Behind) limits {
	return limits{w.limit(operations, behind), w.unregistered}
}

// goes tells whether an operation goes in a message, whatever becomes of the others.
func (w *worth) goes(o *Operation) bool {
	return !o.moves() && !w.apart(o) || o.Unregistered && o.Bytes < w.unregistered
}

// apart tells whether an operation goes direct, whatever becomes of the others.
func (w *worth) apart(o *Operation) bool { return w.atomics && o.combines() }

// limit is below how many bytes puts and gets are packed whose memory is registered.
func (w *worth) limit(operations []Operation, behind Behind) int {
	message, settled, longest := w.message, 0.0, -1
	if behind == Message || behind == End {
		message = 0
	}
	if behind == End || behind == Local {
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
		if w.apart(o) || behind == Local && o.Reads() {
			// That is waited for however the others go.
			settled = 0
		}
	}
	if longest >= w.sure {
		return w.search(operations, settled, message, longest)
	}
	// Each is worth it, and with some of them a message is.
	var some bundle
	for i := 0; message > 0; i++ {
		if i == len(operations) {
			return 0
		}
		if w.apart(&operations[i]) {
			continue
		}
		if some.add(&operations[i]); w.of(&some)+settled > message {
			break
		}
	}
	return w.sure
}

// classes are those of operations by the logarithm of their length, as far as one is packed.
const classes = 32

// search is limit where it depends on all operations, of which the longest has so many bytes:
// the best of the powers of two below small, of small, and of alone.
func (w *worth) search(operations []Operation, settled, message float64, longest int) int {
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
		if value := w.of(&all) + settled - message; all.count > 0 && value >= best {
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
