package perfetto_test

import (
	"bytes"
	"fmt"
	"log"
	"time"

	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/sim/perfetto"
)

// A rank computes, and adds a span of its own; the file would be opened in
// ui.perfetto.dev.
func Example() {
	s, err := sim.New(sim.Ideal(), 1)
	if err != nil {
		log.Fatal(err)
	}
	var file bytes.Buffer
	trace := perfetto.NewWriter(&file)
	s.Trace(trace.Event)
	d := s.Open()
	d.Go("rank 0", func() {
		begun := d.Now()
		d.Compute(1500 * time.Nanosecond)
		trace.Span(d.Rank(), "first step", begun, d.Now())
	})
	if err := s.Run(); err != nil {
		log.Fatal(err)
	}
	if err := trace.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Print(file.String())
	// Output:
	// {"displayTimeUnit":"ns","traceEvents":[
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"process_name","args":{"name":"rank 0"}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"process_sort_index","args":{"sort_index":0}},
	// {"ph":"M","pid":0,"tid":3,"ts":0,"name":"thread_name","args":{"name":"processor"}},
	// {"ph":"M","pid":0,"tid":3,"ts":0,"name":"thread_sort_index","args":{"sort_index":1}},
	// {"ph":"X","pid":0,"tid":3,"ts":0,"dur":1.500,"name":"compute","args":{"bytes":0,"task":1}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"thread_name","args":{"name":"program"}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"thread_sort_index","args":{"sort_index":0}},
	// {"ph":"X","pid":0,"tid":0,"ts":0,"dur":1.500,"name":"first step"}
	// ]}
}
