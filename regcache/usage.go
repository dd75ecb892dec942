package regcache

import "math/bits"

const (
	// Floor is the least that is worth counting, in bytes: what is shorter goes to the card with
	// its request.
	Floor = 128
	// firstBuckets and mostBuckets are how many buckets a table has at first and at most.
	firstBuckets = 1 << 6
	mostBuckets  = 1 << 20
	// fewFrequent: a table grows no more, once its chains do, if fewer of its buffers than one
	// in so many are frequently used (paper B, 3.4).
	fewFrequent = 5
	// patience is for how many times as many uses as it has buffers a table refuses new ones
	// before it forgets those that are not frequent.
	patience = 4
)

// Usage counts the uses of buffers, each of which is told by its address and the class of its
// size (paper B, 3.3). It is a hash table with chains, whose buckets double up to 2^20 as it fills.
// With each goes what its user notes of it, an E. The zero value is an empty table; it is not for
// several goroutines at once.
//
// Once its chains grow it takes no more buffers while less than a fifth of those that it has are
// frequently used (3.4). A program may change: after some time of refusing, the table forgets
// the others. So it never has more than 2^20 buffers.
type Usage[E any] struct {
	// heads are the first of each bucket's chain, as indices into buffers from 1 on.
	heads   []uint32
	buffers []buffer[E]
	// shift is what a hash is shifted by to be the number of a bucket.
	shift uint8
	// frequent of the buffers have come to their threshold.
	frequent int
	// refused counts the uses that were not counted since the table has taken the last buffer.
	refused int
}

// A buffer is one that was used.
type buffer[E any] struct {
	address  uint64
	noted    E
	uses     uint32
	next     uint32
	class    uint8
	frequent bool
}

// classOf is the class of sizes up to the next power of 2.
func classOf(size int) uint8 { return uint8(bits.Len(uint(size - 1))) }

// golden is 2^64 divided by the golden ratio, and odd: multiples of it spread over the upper bits.
const golden = 0x9e3779b97f4a7c15

func (u *Usage[E]) bucket(address uint64, class uint8) uint32 {
	return uint32((address ^ uint64(class)<<56) * golden >> u.shift)
}

// Use counts a use of a buffer of size bytes, at least 1, and tells whether that is frequently
// used: whether these were threshold uses or more, of which 0 is none. noted is what goes with it,
// until the next Use, and nil for a buffer that is not in the table: what that has no room for is not
// frequent.
func (u *Usage[E]) Use(address uint64, size, threshold int) (noted *E, frequent bool) {
	if threshold <= 0 {
		return nil, false
	}
	class := classOf(size)
	b := u.find(address, class)
	if b == nil {
		if b = u.add(address, class); b == nil {
			return nil, false
		}
	}
	if b.frequent {
		return &b.noted, true
	}
	if b.uses++; b.uses < uint32(threshold) {
		return &b.noted, false
	}
	b.frequent = true
	u.frequent++
	return &b.noted, true
}

func (u *Usage[E]) find(address uint64, class uint8) *buffer[E] {
	if u.heads == nil {
		return nil
	}
	for i := u.heads[u.bucket(address, class)]; i != 0; {
		b := &u.buffers[i-1]
		if b.address == address && b.class == class {
			return b
		}
		i = b.next
	}
	return nil
}

// add takes another buffer, unless it is not worth it: then it is nil.
func (u *Usage[E]) add(address uint64, class uint8) *buffer[E] {
	n := len(u.buffers)
	if n == mostBuckets || 2*n >= mostBuckets && u.frequent*fewFrequent < n {
		if u.refused < patience*n {
			u.refused++
			return nil
		}
		u.forget()
	} else if n == len(u.heads) {
		u.grow()
	}
	u.refused = 0
	u.buffers = append(u.buffers, buffer[E]{address: address, class: class})
	u.link(len(u.buffers) - 1)
	return &u.buffers[len(u.buffers)-1]
}

// link puts a buffer before the others of its chain.
func (u *Usage[E]) link(i int) {
	b := &u.buffers[i]
	head := &u.heads[u.bucket(b.address, b.class)]
	b.next, *head = *head, uint32(i+1)
}

// grow doubles the buckets.
func (u *Usage[E]) grow() {
	n := max(2*len(u.heads), firstBuckets)
	u.heads = make([]uint32, n)
	u.shift = uint8(64 - bits.Len(uint(n-1)))
	for i := range u.buffers {
		u.link(i)
	}
}

// forget keeps the buffers that are frequently used, or none if they are most.
func (u *Usage[E]) forget() {
	kept := u.buffers[:0]
	if 2*u.frequent < len(u.buffers) {
		for _, b := range u.buffers {
			if b.frequent {
				kept = append(kept, b)
			}
		}
	}
	clear(u.buffers[len(kept):])
	u.buffers, u.frequent = kept, len(kept)
	clear(u.heads)
	for i := range u.buffers {
		u.link(i)
	}
}

// Len is how many buffers the table has, Frequent how many of them are frequently used.
func (u *Usage[E]) Len() int      { return len(u.buffers) }
func (u *Usage[E]) Frequent() int { return u.frequent }
