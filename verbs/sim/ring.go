package sim

// A ring is a queue that reuses its memory.
type ring[T any] struct {
	entries []T
	first   int
	count   int
}

// at returns the i-th entry from the front.
func (r *ring[T]) at(i int) *T {
	i += r.first
	if i >= len(r.entries) {
		i -= len(r.entries)
	}
	return &r.entries[i]
}

// extend returns a new last entry with its old contents, whose slices the caller may reuse.
func (r *ring[T]) extend() *T {
	if r.count == len(r.entries) {
		larger := make([]T, max(4, 2*r.count))
		copy(larger[copy(larger, r.entries[r.first:]):], r.entries[:r.first])
		r.entries, r.first = larger, 0
	}
	r.count++
	return r.at(r.count - 1)
}

// drop removes the first n entries. An empty ring starts again at the beginning, so that a ring with few entries uses
// little memory.
func (r *ring[T]) drop(n int) {
	if r.count -= n; r.count == 0 {
		r.first = 0
		return
	}
	if r.first += n; r.first >= len(r.entries) {
		r.first -= len(r.entries)
	}
}
