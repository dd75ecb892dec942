package rails

import "github.com/onesided/rma/verbs"

// A deferredRequest is a request that waits to be posted, with its own slices, which are reused.
type deferredRequest struct {
	verbs.SendRequest
	inline []byte
}

// A deferredRing has the deferred requests of a queue pair, count of them from at on.
type deferredRing struct {
	entries   []deferredRequest
	at, count int
}

// add copies a request, whose slices belong to the caller.
func (h *deferredRing) add(r *verbs.SendRequest) {
	if h.count == len(h.entries) {
		larger := make([]deferredRequest, max(4, 2*h.count))
		copy(larger[copy(larger, h.entries[h.at:]):], h.entries[:h.at])
		h.entries, h.at = larger, 0
	}
	e := &h.entries[(h.at+h.count)%len(h.entries)]
	h.count++
	segments := e.Segments[:0]
	e.SendRequest = *r
	if r.Flags&verbs.Inline == 0 {
		e.Segments = append(segments, r.Segments...)
		return
	}
	e.inline = e.inline[:0]
	for i := range r.Segments {
		e.inline = append(e.inline, r.Segments[i].Memory...)
	}
	e.Segments = append(segments, verbs.Segment{Memory: e.inline})
}

// nth returns the i-th request.
func (h *deferredRing) nth(i int) *verbs.SendRequest {
	return &h.entries[(h.at+i)%len(h.entries)].SendRequest
}

// drop removes the first n.
func (h *deferredRing) drop(n int) {
	for range n {
		clear(h.entries[h.at].Segments)
		h.at = (h.at + 1) % len(h.entries)
		h.count--
	}
}
