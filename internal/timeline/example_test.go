package timeline_test

import (
	"log"
	"os"
	"time"

	"github.com/onesided/rma/internal/timeline"
)

// Two requests of a rank overlap, so that they are on lanes of their own.
func Example() {
	w := timeline.NewWriter(os.Stdout)
	w.Process(0, "rank 0")
	var rows timeline.Rows
	for i, span := range [][2]time.Duration{{0, 2500}, {1000, 3500}} {
		lane := rows.Place(span[0], span[1])
		w.Lane(0, lane, "out", lane)
		w.Span(0, lane, span[0], span[1])
		w.Numbered(1, "write to ")
		w.Argument("bytes", int64(8<<i))
		w.End()
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"displayTimeUnit":"ns","traceEvents":[
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"process_name","args":{"name":"rank 0"}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"process_sort_index","args":{"sort_index":0}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"thread_name","args":{"name":"out"}},
	// {"ph":"M","pid":0,"tid":0,"ts":0,"name":"thread_sort_index","args":{"sort_index":0}},
	// {"ph":"X","pid":0,"tid":0,"ts":0,"dur":2.500,"name":"write to 1","args":{"bytes":8}},
	// {"ph":"M","pid":0,"tid":1,"ts":0,"name":"thread_name","args":{"name":"out"}},
	// {"ph":"M","pid":0,"tid":1,"ts":0,"name":"thread_sort_index","args":{"sort_index":1}},
	// {"ph":"X","pid":0,"tid":1,"ts":1,"dur":2.500,"name":"write to 1","args":{"bytes":16}}
	// ]}
}
