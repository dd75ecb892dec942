package timeline

import "time"

// Rows are lanes on which spans find place that overlap: on each they lie apart, or one in
// the other. The zero value has none.
type Rows struct {
	// open are, of each row, the ends of the spans that are not over, the outer first.
	open [][]time.Duration
}

// Place gives the number of the first row, from 0, on which a span finds place, and puts it
// there. Spans come in the order of their beginnings, of those that begin at once the
// longer first.
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

// Len is how many rows there are.
func (r *Rows) Len() int { return len(r.open) }
