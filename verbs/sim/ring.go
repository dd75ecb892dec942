package sim

// A ring is a queue that uses its memory again.
type ring[T any] struct {
	entries []T
	first   int
	count   int
}

// at is the i-th from the front.
func (r *ring[T]) at(i int) *T {
	i += r.first
	if i >= len(r.entries) {
		i -= len(r.entries)
	}
	return &r.entries[i]
}

// extend gives the place behind the last, with what was there before, whose slices the
// caller may use again.
func (r *ring[T]) extend() *T {
	if r.count == len(r.entries) {
		larger := make([]T, max(4, 2*r.count))
		copy(larger[copy(larger, r.entries[r.first:]):], r.entries[:r.first])
		r.entries, r.first = larger, 0
	}
	r.count++
	return r.at(r.count - 1)
}

// drop takes the first n away. An empty ring begins anew, so that one which never holds
// much uses little memory again and again.
func (r *ring[T]) drop(n int) {
	if r.count -= n; r.count == 0 {
		r.first = 0
		return
	}
	if r.first += n; r.first >= len(r.entries) {
		r.first -= len(r.entries)
	}
}
