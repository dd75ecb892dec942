// Package timeline writes what happened when, in lanes, as a file that ui.perfetto.dev and
// chrome://tracing open: JSON in the Trace Event Format.
//
//	w := timeline.NewWriter(file)
//	w.Process(0, "rank 0")
//	w.Lane(0, 1, "program", 0)
//	w.Span(0, 1, begun, ended)
//	w.Name("step")
//	w.End()
//	err := w.Close()
//
// A process, which here is a rank, has lanes, each a line of spans and marks. Spans of one
// lane lie apart, or one in the other; [Rows] finds lanes for spans that do not.
//
// [Append] has several processes write one file, each when it is done.
//
// What is written needs no order. Nothing is kept of it, and writing allocates nothing but
// for text that has to be escaped. The same calls write the same bytes.
package timeline

import _ "github.com/onesided/rma/internal/platform"
