// Package timeline writes events in lanes over time, as a file that ui.perfetto.dev and chrome://tracing open: JSON in
// the Trace Event Format.
//
//	w := timeline.NewWriter(file)
//	w.Process(0, "rank 0")
//	w.Lane(0, 1, "program", 0)
//	w.Span(0, 1, begun, ended)
//	w.Name("step")
//	w.End()
//	err := w.Close()
//
// A process, which here is a rank, has lanes of spans and marks. Two spans of one lane are disjoint or nested. [Rows]
// finds lanes for spans that overlap.
//
// [Append] lets several processes write one file, each when it is done.
//
// Events may be written in any order. The package keeps nothing of them, and allocates only for text that has to be
// escaped. The same calls write the same bytes.
package timeline

import _ "github.com/onesided/rma/internal/platform"
