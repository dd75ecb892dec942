package perfetto

import (
	"io"
	"strconv"
	"time"

	"github.com/onesided/rma/internal/timeline"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// A Writer writes one trace. Its methods must not be called by several goroutines at once. Tasks of a simulator never
// run at once.
type Writer struct {
	out   *timeline.Writer
	ranks map[int]*rank
}

// A rank is a rank's lanes that have names.
type rank struct {
	named [processors]bool
	// busy is the time until which each of its processor lanes is taken.
	busy []time.Duration
}

// The lanes of a rank, by their number in the file.
const (
	program = iota
	linkOut
	linkIn
	// processors is the first processor lane.
	processors
)

// The positions of the lanes, from above.
var positions = [processors]int{program: 0, linkOut: 1 << 20, linkIn: 1<<20 + 1}

var laneNames = [processors]string{program: "program", linkOut: "link out", linkIn: "link in"}

// NewWriter returns a Writer of a new trace.
func NewWriter(w io.Writer) *Writer {
	return &Writer{out: timeline.NewWriter(w), ranks: make(map[int]*rank)}
}

// Close ends the trace and returns the first error of the Writer. It does not close the underlying writer. Later output
// is dropped.
func (t *Writer) Close() error { return t.out.Close() }

// Span adds a span of a rank's program, between two times of its device's Now. Two spans of a rank must be disjoint or
// nested; their order does not matter.
func (t *Writer) Span(rank int, name string, from, until time.Duration) {
	t.lane(rank, program)
	t.out.Span(rank, program, from, until)
	t.out.Name(name)
	t.out.End()
}

// Event adds an event of a simulated card. It is the function for [sim.Simulator.Trace].
func (t *Writer) Event(e sim.Event) {
	switch e.Kind {
	case sim.Sent, sim.Received:
		t.link(&e)
	case sim.Placed, sim.Starved:
		t.mark(&e, linkIn)
	case sim.Completed, sim.Failed, sim.Closed, sim.Struck, sim.Healed:
		t.mark(&e, processors)
	case sim.Called:
		t.Span(e.Rank, e.Call, e.At, e.Until)
	default:
		t.work(&e)
	}
}

// link writes bytes that pass one direction of a link.
func (t *Writer) link(e *sim.Event) {
	lane, towards := linkOut, " to "
	if e.Kind == sim.Received {
		lane, towards = linkIn, " from "
	}
	t.lane(e.Rank, lane)
	t.out.Span(e.Rank, lane, e.At, e.Until)
	part := ""
	if e.Opcode >= verbs.OpRDMARead && e.Opcode <= verbs.OpCompareSwap {
		part = " request"
		if e.Response {
			part = " response"
		}
	}
	t.out.Numbered(e.Peer, e.Opcode.String(), part, towards)
	t.arguments(e)
	t.out.End()
}

// work writes what a task has the processor do.
func (t *Writer) work(e *sim.Event) {
	t.out.Span(e.Rank, t.processor(e.Rank, e.At, e.Until), e.At, e.Until)
	if e.Kind == sim.Posted {
		t.out.Name("post ", e.Opcode.String())
	} else {
		t.out.Name(verb(e.Kind))
	}
	t.arguments(e)
	t.out.End()
}

// mark writes a moment: on a lane, or across those of the rank.
func (t *Writer) mark(e *sim.Event, lane int) {
	t.lane(e.Rank, lane)
	where := byte(timeline.OnLane)
	switch e.Kind {
	case sim.Failed, sim.Struck, sim.Healed:
		where = timeline.AcrossProcess
	}
	t.out.Mark(e.Rank, lane, e.At, where)
	switch e.Kind {
	case sim.Struck, sim.Healed:
		t.out.Name(e.Kind.String(), ": ", e.Fault)
		t.out.End()
		return
	case sim.Failed, sim.Closed:
		t.out.Name(e.Kind.String())
	default:
		if e.Status == verbs.StatusSuccess {
			t.out.Name(e.Kind.String(), " ", e.Opcode.String())
		} else {
			t.out.Name(e.Kind.String(), " ", e.Opcode.String(), ": ", e.Status.String())
		}
	}
	t.arguments(e)
	t.out.End()
}

// arguments writes what a viewer shows for a selected event.
func (t *Writer) arguments(e *sim.Event) {
	t.out.Argument("bytes", int64(e.Bytes))
	if e.Kind == sim.Sent || e.Kind == sim.Received {
		t.out.Argument("offset", int64(e.Offset))
	}
	if e.QueuePair != 0 {
		if e.Peer >= 0 {
			t.out.Argument("peer", int64(e.Peer))
		}
		t.out.Argument("queue pair", int64(e.QueuePair))
		t.out.Identity("request", e.Request)
	}
	if e.Task != 0 {
		t.out.Argument("task", int64(e.Task))
	}
}

// processor returns a lane of the rank's processor that is free from a time on, and takes it.
func (t *Writer) processor(of int, from, until time.Duration) (lane int) {
	r := t.rank(of)
	for i := range r.busy {
		if r.busy[i] <= from {
			r.busy[i] = until
			return processors + i
		}
	}
	return t.another(of, until)
}

// another adds a processor lane of a rank, which is taken until a time.
func (t *Writer) another(of int, until time.Duration) (lane int) {
	r := t.rank(of)
	r.busy = append(r.busy, until)
	name := "processor"
	if n := len(r.busy); n > 1 {
		name += " " + strconv.Itoa(n)
	}
	lane = processors + len(r.busy) - 1
	t.out.Lane(of, lane, name, len(r.busy))
	return lane
}

// lane writes the name of a lane, once.
func (t *Writer) lane(of, lane int) {
	r := t.rank(of)
	if lane == processors && len(r.busy) == 0 {
		t.another(of, 0)
	}
	if lane >= processors || r.named[lane] {
		return
	}
	r.named[lane] = true
	t.out.Lane(of, lane, laneNames[lane], positions[lane])
}

// rank writes the name of a rank, once.
func (t *Writer) rank(number int) *rank {
	r := t.ranks[number]
	if r == nil {
		r = new(rank)
		t.ranks[number] = r
		t.out.Process(number, "rank "+strconv.Itoa(number))
	}
	return r
}

// verb returns what a processor does in an event.
func verb(k sim.EventKind) string {
	switch k {
	case sim.Posted:
		return "post"
	case sim.Computed:
		return "compute"
	case sim.Copied:
		return "copy"
	case sim.Registered:
		return "register"
	case sim.Deregistered:
		return "deregister"
	case sim.Polled:
		return "poll"
	case sim.Slept:
		return "sleep"
	}
	return k.String()
}
