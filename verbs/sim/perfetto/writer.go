package perfetto

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// A Writer writes one trace. Its methods are not to be called at once by several
// goroutines; tasks of a simulator are no such.
type Writer struct {
	out   *bufio.Writer
	line  []byte
	some  bool
	ranks map[int]*rank
	err   error
}

// A rank is known by what lanes it has.
type rank struct {
	named [processors]bool
	// busy is until when each of its processor lanes is taken.
	busy []time.Duration
}

// The lanes of a rank, by their number in the file.
const (
	program = iota
	linkOut
	linkIn
	// processors is the first of them.
	processors
)

// Where the lanes stand, from above.
var positions = [processors]int{program: 0, linkOut: 1 << 20, linkIn: 1<<20 + 1}

var laneNames = [processors]string{program: "program", linkOut: "link out", linkIn: "link in"}

// errClosed: a second Close.
var errClosed = errors.New("perfetto: the trace is closed")

// NewWriter begins a trace.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{out: bufio.NewWriterSize(w, 1<<16), ranks: make(map[int]*rank)}
	t.put([]byte(`{"displayTimeUnit":"ns","traceEvents":[`))
	return t
}

// Close ends the trace, and returns the first error that there was. It does not close what
// it was written to. What comes later is dropped.
func (t *Writer) Close() error {
	t.put([]byte("\n]}\n"))
	if t.err == nil {
		t.err = t.out.Flush()
	}
	err := t.err
	if err == nil {
		t.err = errClosed
	}
	return err
}

// put writes, unless something has failed before.
func (t *Writer) put(text []byte) {
	if t.err == nil {
		_, t.err = t.out.Write(text)
	}
}

// Span adds what the program of a rank did from one time to another of its device's Now.
// Spans of a rank lie apart, or one in the other, in any order.
func (t *Writer) Span(rank int, name string, from, until time.Duration) {
	t.lane(rank, program)
	t.begin('X', rank, program, from)
	t.span(until - from)
	t.name(`,"name":`, name)
	t.end()
}

// Event adds what a simulated card does; it is for sim.Simulator.Trace.
func (t *Writer) Event(e sim.Event) {
	switch e.Kind {
	case sim.Sent, sim.Received:
		t.link(&e)
	case sim.Placed, sim.Starved:
		t.mark(&e, linkIn)
	case sim.Completed, sim.Failed, sim.Struck, sim.Healed:
		t.mark(&e, processors)
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
	t.begin('X', e.Rank, lane, e.At)
	t.span(e.Until - e.At)
	t.line = append(t.line, `,"name":"`...)
	t.line = append(t.line, opcode(e.Opcode)...)
	if e.Opcode >= verbs.OpRDMARead && e.Opcode <= verbs.OpCompareSwap {
		if e.Answer {
			t.line = append(t.line, " answer"...)
		} else {
			t.line = append(t.line, " request"...)
		}
	}
	t.line = append(t.line, towards...)
	t.line = strconv.AppendInt(t.line, int64(e.Peer), 10)
	t.line = append(t.line, '"')
	t.arguments(e)
	t.end()
}

// work writes what a task has the processor do.
func (t *Writer) work(e *sim.Event) {
	t.begin('X', e.Rank, t.processor(e.Rank, e.At, e.Until), e.At)
	t.span(e.Until - e.At)
	t.line = append(t.line, `,"name":"`...)
	t.line = append(t.line, verb(e.Kind)...)
	if e.Kind == sim.Posted {
		t.line = append(t.line, ' ')
		t.line = append(t.line, opcode(e.Opcode)...)
	}
	t.line = append(t.line, '"')
	t.arguments(e)
	t.end()
}

// mark writes a moment: on a lane, or across those of the rank.
func (t *Writer) mark(e *sim.Event, lane int) {
	t.lane(e.Rank, lane)
	t.begin('i', e.Rank, lane, e.At)
	scope := byte('t')
	if e.Kind >= sim.Failed {
		scope = 'p'
	}
	t.line = append(t.line, `,"s":"`...)
	t.line = append(t.line, scope, '"')
	switch e.Kind {
	case sim.Struck, sim.Healed:
		t.name(`,"name":`, e.Kind.String()+": "+e.Fault)
	case sim.Failed:
		t.line = append(t.line, `,"name":"failed"`...)
		t.arguments(e)
	default:
		t.line = append(t.line, `,"name":"`...)
		t.line = append(t.line, e.Kind.String()...)
		t.line = append(t.line, ' ')
		t.line = append(t.line, opcode(e.Opcode)...)
		if e.Status != verbs.StatusSuccess {
			t.line = append(t.line, ": "...)
			t.line = append(t.line, e.Status.String()...)
		}
		t.line = append(t.line, '"')
		t.arguments(e)
	}
	t.end()
}

// arguments are what a viewer shows of an event that is selected.
func (t *Writer) arguments(e *sim.Event) {
	t.line = append(t.line, `,"args":{"bytes":`...)
	t.line = strconv.AppendInt(t.line, int64(e.Bytes), 10)
	if e.Kind == sim.Sent || e.Kind == sim.Received {
		t.number("offset", uint64(e.Offset))
	}
	if e.QueuePair != 0 {
		if e.Peer >= 0 {
			t.number("peer", uint64(e.Peer))
		}
		t.number("queue pair", uint64(e.QueuePair))
		t.number("request", e.Request)
	}
	if e.Task != 0 {
		t.number("task", uint64(e.Task))
	}
	t.line = append(t.line, '}')
}

func (t *Writer) number(name string, n uint64) {
	t.line = append(t.line, `,"`...)
	t.line = append(t.line, name...)
	t.line = append(t.line, `":`...)
	t.line = strconv.AppendUint(t.line, n, 10)
}

// processor gives a lane of the rank's that is free from a time on, and takes it.
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

// another begins a further processor lane of a rank, which is taken until a time.
func (t *Writer) another(of int, until time.Duration) (lane int) {
	r := t.rank(of)
	r.busy = append(r.busy, until)
	name := "processor"
	if n := len(r.busy); n > 1 {
		name += " " + strconv.Itoa(n)
	}
	lane = processors + len(r.busy) - 1
	t.title("thread_name", of, lane, name)
	t.sort("thread_sort_index", of, lane, len(r.busy))
	return lane
}

// lane writes what a lane is called, once.
func (t *Writer) lane(of, lane int) {
	r := t.rank(of)
	if lane == processors && len(r.busy) == 0 {
		t.another(of, 0)
	}
	if lane >= processors || r.named[lane] {
		return
	}
	r.named[lane] = true
	t.title("thread_name", of, lane, laneNames[lane])
	t.sort("thread_sort_index", of, lane, positions[lane])
}

// rank writes what a rank is called, once.
func (t *Writer) rank(number int) *rank {
	r := t.ranks[number]
	if r == nil {
		r = new(rank)
		t.ranks[number] = r
		t.title("process_name", number, program, "rank "+strconv.Itoa(number))
		t.sort("process_sort_index", number, program, number)
	}
	return r
}

// title and sort write the name and the place of a rank or a lane.
func (t *Writer) title(what string, rank, lane int, name string) {
	t.begin('M', rank, lane, 0)
	t.name(`,"name":`, what)
	t.name(`,"args":{"name":`, name)
	t.line = append(t.line, '}')
	t.end()
}

func (t *Writer) sort(what string, rank, lane, position int) {
	t.begin('M', rank, lane, 0)
	t.name(`,"name":`, what)
	t.line = append(t.line, `,"args":{"sort_index":`...)
	t.line = strconv.AppendInt(t.line, int64(position), 10)
	t.line = append(t.line, '}')
	t.end()
}

// begin writes the head of an event, span how long it lasts, name a string; end ends it.
func (t *Writer) begin(phase byte, rank, lane int, at time.Duration) {
	t.line = t.line[:0]
	if t.some {
		t.line = append(t.line, ',')
	}
	t.some = true
	t.line = append(t.line, "\n{\"ph\":\""...)
	t.line = append(t.line, phase)
	t.line = append(t.line, `","pid":`...)
	t.line = strconv.AppendInt(t.line, int64(rank), 10)
	t.line = append(t.line, `,"tid":`...)
	t.line = strconv.AppendInt(t.line, int64(lane), 10)
	t.line = append(t.line, `,"ts":`...)
	t.microseconds(at)
}

func (t *Writer) span(took time.Duration) {
	t.line = append(t.line, `,"dur":`...)
	t.microseconds(max(took, 0))
}

func (t *Writer) name(key, text string) {
	t.line = append(t.line, key...)
	quoted, err := json.Marshal(text)
	if err != nil {
		quoted = []byte(`""`)
	}
	t.line = append(t.line, quoted...)
}

func (t *Writer) end() {
	t.line = append(t.line, '}')
	t.put(t.line)
}

// microseconds are the unit of the format; nanoseconds are its thousandths.
func (t *Writer) microseconds(d time.Duration) {
	if d < 0 {
		t.line = append(t.line, '-')
		d = -d
	}
	t.line = strconv.AppendInt(t.line, int64(d/time.Microsecond), 10)
	if rest := int64(d % time.Microsecond); rest > 0 {
		t.line = append(t.line, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	}
}

var opcodes = [...]string{
	verbs.OpSend: "message", verbs.OpSendImmediate: "message with immediate", verbs.OpRDMAWrite: "write",
	verbs.OpRDMAWriteImmediate: "write with immediate", verbs.OpRDMARead: "read", verbs.OpFetchAdd: "fetch-add",
	verbs.OpCompareSwap: "compare-swap", verbs.OpReceive: "receive", verbs.OpReceiveImmediate: "receive with immediate",
}

func opcode(o verbs.Opcode) string {
	if int(o) < len(opcodes) {
		return opcodes[o]
	}
	return "request"
}

// verb is what a processor does in an event.
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
