package timeline

import "time"

// Rows assigns overlapping spans to lanes, so that two spans on a lane are disjoint or nested. The zero value has no
// lane.
type Rows struct {
	// open has, for each row, the ends of the spans that are not over, the outermost first.
	open [][]time.Duration
}

// Place puts a span on the first row that has room for it, and returns the number of the row, from 0 on. Spans must
// come in the order of their beginnings; of those that begin at the same time, the longer first.
func (r *Rows) Place(from, until time.Duration) (row int) {
	for row := range r.open {
		open := r.open[row]
		for len(open) > 0 && open[len(open)-1] <= from {
			open = open[:len(open)-1]
		}
		fits := len(open) == 0 || until <= open[len(open)-1]
		if fits {
			open = append(open, until)
		}
		if r.open[row] = open; fits {
			return row
		}
	}
	r.open = append(r.open, []time.Duration{until})
	return len(r.open) - 1
}

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.open) }
