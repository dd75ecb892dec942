package tcp

import "sync"

// A batch is memory for the frames that leave together: scratch has the headers and small payloads, vectors all parts in
// order. A connection has one while it has output that has not left.
type batch struct {
	scratch [scratchBytes]byte
	vectors [maxVectors][]byte
	// next is the next free batch.
	next *batch
}

// batches are the batches of a device that no connection has. They are enough for as many connections as have had output
// at once; those that were not needed for a while are freed.
type batches struct {
	mu    sync.Mutex
	first *batch
	// free is the number of free batches, spare the least number since the last trim.
	free, spare int
}

// take takes a free batch or makes one. Its vectors are nil.
func (b *batches) take() *batch {
	b.mu.Lock()
	taken := b.first
	if taken != nil {
		b.first, taken.next = taken.next, nil
		b.free--
		b.spare = min(b.spare, b.free)
	}
	b.mu.Unlock()
	if taken == nil {
		taken = new(batch)
	}
	return taken
}

// put takes a batch back, whose vectors are nil.
func (b *batches) put(one *batch) {
	b.mu.Lock()
	one.next = b.first
	b.first = one
	b.free++
	b.mu.Unlock()
}

// trim frees the batches that were not needed since the last trim, but one.
func (b *batches) trim() {
	b.mu.Lock()
	for ; b.spare > 1; b.spare-- {
		b.first = b.first.next
		b.free--
	}
	b.spare = b.free
	b.mu.Unlock()
}
