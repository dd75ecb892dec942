package timeline

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"
)

// A Writer writes one file. Its methods must not be called by several goroutines at once.
//
// Span or Mark begins an event. Its name comes next, then its arguments, and End ends it.
type Writer struct {
	out  *bufio.Writer
	line []byte
	// some is set if there is an event already, arguments if the current event has some.
	some, arguments bool
	err             error
}

// The scope of a Mark.
const (
	// OnLane draws a mark on its lane only, AcrossProcess over all lanes of the process.
	OnLane        = 't'
	AcrossProcess = 'p'
)

const (
	opening = `{"displayTimeUnit":"ns",`
	events  = `"traceEvents":[`
	closing = "\n]}\n"
)

// errClosed reports a second Close.
var errClosed = errors.New("timeline: the file is closed")

// NewWriter returns a Writer of a new file.
func NewWriter(w io.Writer) *Writer {
	t := further(w, false)
	t.put([]byte(opening + events))
	return t
}

// further returns a Writer that continues a file. some says whether the file has events.
func further(w io.Writer, some bool) *Writer {
	return &Writer{out: bufio.NewWriterSize(w, 1<<16), some: some}
}

// Close ends the file and returns the first error of the Writer. It does not close the underlying writer. Later output
// is dropped.
func (t *Writer) Close() error {
	t.put([]byte(closing))
	if t.err == nil {
		t.err = t.out.Flush()
	}
	err := t.err
	if err == nil {
		t.err = errClosed
	}
	return err
}

// put writes unless an earlier write has failed.
func (t *Writer) put(text []byte) {
	if t.err == nil {
		_, t.err = t.out.Write(text)
	}
}

// Process names a process. Viewers show processes in the order of their numbers.
func (t *Writer) Process(process int, name string) {
	t.title("process_name", process, 0, name)
	t.sort("process_sort_index", process, 0, process)
}

// Lane names a lane of a process. Viewers show the lanes of a process in the order of their positions, the lowest
// first.
func (t *Writer) Lane(process, lane int, name string, position int) {
	t.title("thread_name", process, lane, name)
	t.sort("thread_sort_index", process, lane, position)
}

// Span begins an event that lasts from one time until another.
func (t *Writer) Span(process, lane int, from, until time.Duration) {
	t.begin('X', process, lane, from)
	t.line = append(t.line, `,"dur":`...)
	t.microseconds(max(until-from, 0))
}

// Mark begins an event at one time. where is OnLane or AcrossProcess.
func (t *Writer) Mark(process, lane int, at time.Duration, where byte) {
	t.begin('i', process, lane, at)
	t.line = append(t.line, `,"s":"`...)
	t.line = append(t.line, where, '"')
}

// Name sets the name of the event to the concatenated parts.
func (t *Writer) Name(parts ...string) {
	t.line = append(t.line, `,"name":`...)
	t.quote(parts)
	t.line = append(t.line, '"')
}

// Numbered is Name with a number after the parts.
func (t *Writer) Numbered(number int, parts ...string) {
	t.line = append(t.line, `,"name":`...)
	t.quote(parts)
	t.line = strconv.AppendInt(t.line, int64(number), 10)
	t.line = append(t.line, '"')
}

// Argument adds a number that a viewer shows for a selected event. Its name is not escaped.
func (t *Writer) Argument(name string, n int64) {
	t.key(name)
	t.line = strconv.AppendInt(t.line, n, 10)
}

// Identity is Argument for unsigned numbers.
func (t *Writer) Identity(name string, n uint64) {
	t.key(name)
	t.line = strconv.AppendUint(t.line, n, 10)
}

func (t *Writer) key(name string) {
	if t.arguments {
		t.line = append(t.line, `,"`...)
	} else {
		t.line = append(t.line, `,"args":{"`...)
	}
	t.arguments = true
	t.line = append(t.line, name...)
	t.line = append(t.line, `":`...)
}

// End ends the event.
func (t *Writer) End() {
	if t.arguments {
		t.line = append(t.line, '}')
	}
	t.line = append(t.line, '}')
	t.put(t.line)
}

// title and sort write the name and the position of a process or a lane.
func (t *Writer) title(what string, process, lane int, name string) {
	t.begin('M', process, lane, 0)
	t.Name(what)
	t.key("name")
	t.quote([]string{name})
	t.line = append(t.line, '"')
	t.End()
}

func (t *Writer) sort(what string, process, lane, position int) {
	t.begin('M', process, lane, 0)
	t.Name(what)
	t.Argument("sort_index", int64(position))
	t.End()
}

// begin writes the head of an event.
func (t *Writer) begin(phase byte, process, lane int, at time.Duration) {
	t.line, t.arguments = t.line[:0], false
	if t.some {
		t.line = append(t.line, ',')
	}
	t.some = true
	t.line = append(t.line, "\n{\"ph\":\""...)
	t.line = append(t.line, phase)
	t.line = append(t.line, `","pid":`...)
	t.line = strconv.AppendInt(t.line, int64(process), 10)
	t.line = append(t.line, `,"tid":`...)
	t.line = strconv.AppendInt(t.line, int64(lane), 10)
	t.line = append(t.line, `,"ts":`...)
	t.microseconds(at)
}

// quote writes a JSON string without its closing quotation mark.
func (t *Writer) quote(parts []string) {
	t.line = append(t.line, '"')
	for _, text := range parts {
		if plain(text) {
			t.line = append(t.line, text...)
		} else if quoted, err := json.Marshal(text); err == nil {
			t.line = append(t.line, quoted[1:len(quoted)-1]...)
		}
	}
}

// plain reports whether text needs no escape in JSON.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// microseconds writes a time in the unit of the format; nanoseconds are its thousandths. Viewers read a number as a
// float, and some truncate its product with 1000 to nanoseconds. Where the result would be one less, spans that touch
// would overlap and be dropped. There a tenth of a nanosecond is added.
func (t *Writer) microseconds(d time.Duration) {
	if d < 0 {
		t.line = append(t.line, '-')
		d = -d
	}
	t.line = strconv.AppendInt(t.line, int64(d/time.Microsecond), 10)
	rest := int64(d % time.Microsecond)
	if rest == 0 {
		return
	}
	t.line = append(t.line, '.', byte('0'+rest/100), byte('0'+rest/10%10), byte('0'+rest%10))
	if read := float64(d) / 1000; time.Duration(read*1000) != d {
		t.line = append(t.line, '1')
	}
}
