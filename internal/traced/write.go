package traced

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/onesided/rma/internal/timeline"
	"github.com/onesided/rma/verbs"
)

// The lanes of a rank, from above.
const (
	program = iota
	processor
	out
	in
	lanes
)

var laneNames = [lanes]string{program: "program", processor: "processor", out: "out", in: "in"}

// rowsOfLane bounds the rows of a lane in a file.
const rowsOfLane = 1 << 20

// An export is a rank's part of a file that is being written.
type export struct {
	w       *timeline.Writer
	process int
	// shift is added to the times of records.
	shift time.Duration
	rows  [lanes]timeline.Rows
	// named is the number of named rows of each lane.
	named [lanes]int
}

// Write adds the recorded events to a file, as a process with a name. Its times are since origin, a time of the
// system's clock (see [Trace.Began]). Events before origin are left out or cut.
func (t *Trace) Write(w *timeline.Writer, process int, name string, origin time.Time) {
	records := t.records()
	slices.SortStableFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.until, a.until))
	})
	s := &export{w: w, process: process, shift: t.began.Sub(origin)}
	w.Process(process, name)
	for i := range records {
		if r := &records[i]; s.shift+r.until >= 0 {
			r.from = max(r.from, -s.shift)
			s.write(r)
		}
	}
}

// name writes the name of a row of a lane, once.
func (s *export) name(lane, row int) {
	if row < s.named[lane] {
		return
	}
	s.named[lane] = row + 1
	name := laneNames[lane]
	if row > 0 {
		name += " " + strconv.Itoa(row+1)
	}
	s.w.Lane(s.process, lane*rowsOfLane+row, name, lane*rowsOfLane+row)
}

// span begins a span on a lane.
func (s *export) span(lane int, r *record) {
	row := s.rows[lane].Place(r.from, r.until)
	s.name(lane, row)
	s.w.Span(s.process, lane*rowsOfLane+row, s.shift+r.from, s.shift+r.until)
}

// mark begins a mark on the first row of a lane.
func (s *export) mark(lane int, r *record) {
	s.name(lane, 0)
	s.w.Mark(s.process, lane*rowsOfLane, s.shift+r.from, timeline.OnLane)
}

func (s *export) write(r *record) {
	w := s.w
	switch r.kind {
	case request:
		s.request(r)
	case received:
		s.mark(in, r)
		w.Name(r.opcode.String(), " from ", *r.pair.peer.Load(), ending(r))
		s.arguments(r)
	case posted:
		s.span(processor, r)
		w.Name("post ", r.opcode.String())
		w.Argument("requests", int64(r.n))
		w.Argument("queue pair", int64(r.pair.Number()))
	case polled:
		s.span(processor, r)
		if r.n > 0 {
			w.Name("poll")
			w.Argument("completions", int64(r.n))
		} else {
			w.Name("serve")
		}
	case slept:
		s.span(processor, r)
		w.Name("sleep")
		w.Argument("times", int64(r.n))
	case computed:
		s.span(processor, r)
		w.Name("compute")
	case spanned:
		s.span(program, r)
		w.Name(r.name)
	case missing:
		s.name(program, 0)
		w.Mark(s.process, program*rowsOfLane, s.shift+r.from, timeline.AcrossProcess)
		w.Name("older ", r.name, " are lost")
		w.Identity("lost", r.id)
	}
	w.End()
}

func (s *export) request(r *record) {
	lane, towards := out, " to "
	switch {
	case r.opcode == verbs.OpRDMARead:
		lane, towards = in, " from "
	case r.opcode > verbs.OpRDMARead:
		lane, towards = in, " at "
	}
	if r.unknownEnd {
		s.mark(lane, r)
	} else {
		s.span(lane, r)
	}
	s.w.Name(r.opcode.String(), towards, *r.pair.peer.Load(), ending(r))
	s.arguments(r)
}

func (s *export) arguments(r *record) {
	s.w.Argument("bytes", int64(r.n))
	s.w.Argument("queue pair", int64(r.pair.Number()))
	s.w.Identity("request", r.id)
}

// ending returns how a record ended, if not well.
func ending(r *record) string {
	switch {
	case r.unfinished:
		return ": unfinished"
	case r.status != verbs.StatusSuccess:
		return ": " + r.status.String()
	}
	return ""
}
