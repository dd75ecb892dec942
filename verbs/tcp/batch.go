package tcp

import (
	"sync"
	"sync/atomic"
)

// A batch is memory for the frames that leave together: scratch has the headers and small payloads, vectors all parts in
// order. A connection has one while it has output that has not left.
type batch struct {
	scratch [scratchBytes]byte
	vectors [maxVectors][]byte
	// next is the next free batch.
	next *batch
}

// batches are the batches of a device that no connection has. There are as many as connections had output at once. trim
// frees those that were not needed since its last call.
type batches struct {
	// quick is a batch that is taken and put back without the mutex, nil while it is taken. Most output leaves at once,
	// and needs no other. Two goroutines that post over two connections hand it back and forth. That costs less than
	// BenchmarkPosters can show beside a batch for each connection.
	quick atomic.Pointer[batch]

	mu sync.Mutex
	// first is the first of a list of free batches, unused the least number of them since the last trim.
	first        *batch
	free, unused int
}

// take takes a free batch or makes one. Its vectors are nil.
func (b *batches) take() *batch {
	if quick := b.quick.Swap(nil); quick != nil {
		return quick
	}
	b.mu.Lock()
	taken := b.first
	if taken != nil {
		b.first, taken.next = taken.next, nil
		b.free--
		b.unused = min(b.unused, b.free)
	}
	b.mu.Unlock()
	if taken == nil {
		taken = new(batch)
	}
	return taken
}

// put takes back a batch, whose vectors are nil.
func (b *batches) put(back *batch) {
	if b.quick.CompareAndSwap(nil, back) {
		return
	}
	b.mu.Lock()
	back.next = b.first
	b.first = back
	b.free++
	b.mu.Unlock()
}

// trim frees the batches of the list that were not needed since the last trim.
func (b *batches) trim() {
	b.mu.Lock()
	for ; b.unused > 0; b.unused-- {
		b.first = b.first.next
		b.free--
	}
	b.unused = b.free
	b.mu.Unlock()
}
