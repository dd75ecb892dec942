package regcache

import "math/bits"

const (
	// Floor is the least that is worth counting, in bytes: what is shorter goes to the card with
	// its request.
	Floor = 128
	// firstBuckets and mostBuckets are for how many buffers a table is at first and at most.
	firstBuckets = 1 << 6
	mostBuckets  = 1 << 20
	// fewFrequent: a table that is half of the largest grows no more if fewer of its buffers than
	// one in so many are frequently used (paper B, 3.4).
	fewFrequent = 5
	// patience is for how many times as many uses as it has buffers a table refuses new ones
	// before it forgets those that are not frequent.
	patience = 4
)

// Usage counts the uses of buffers, each of which is told by its address and the class of its
// size (paper B, 3.3). It is a hash table that doubles as it fills, up to 2^20 buffers. The paper's
// has chains; here a buffer is in the slot of its hash, or the first empty one behind that, which is one
// line of memory to look at instead of two, and every other slot stays empty. With each goes what its
// user notes of it, an E. The zero value is an empty table; it is not for several goroutines at once.
//
// Once it is half full it takes no more buffers while less than a fifth of those that it has are
// frequently used (3.4). A program may change: after some time of refusing, the table forgets
// the others.
type Usage[E any] struct {
	// slots are those of buffers; one that was never used is none.
	slots []Buffer[E]
	// shift is what a hash is shifted by to be the number of a slot.
	shift uint8
	count int
	// frequent of the buffers have come to their threshold.
	frequent int
	// refused counts the uses that were not counted since the table has taken the last buffer.
	refused int
}

// A Buffer is one that was used.
type Buffer[E any] struct {
	address uint64
	Noted   E
	// uses are those of its life, and last is when the last of them was, by its class's learner.
	uses, last uint32
	class      uint8
	// life is 1 more than its number among the lives that its class learns from, 0 if it is none.
	life uint8
	// frequent is whether it has come to the threshold, refused whether it can't be registered.
	frequent, refused bool
}

// classOf is the class of sizes up to the next power of 2.
func classOf(size int) uint8 { return uint8(bits.Len(uint(size - 1))) }

// golden is 2^64 divided by the golden ratio, and odd: multiples of it spread over the upper bits.
const golden = 0x9e3779b97f4a7c15

// slot is where to look for a buffer first.
func (u *Usage[E]) slot(address uint64, class uint8) int {
	return int((address ^ uint64(class)<<56) * golden >> (u.shift & 63))
}

// Use counts a use of a buffer of size bytes, at least 1, up to most of them, and tells whether it is
// frequently used: whether there were threshold uses or more, of which 0 is none, at some time. The
// buffer is in place until the next Use. It is nil where the table has no room for it: then it is not
// frequent.
func (u *Usage[E]) Use(address uint64, size, threshold, most int) (b *Buffer[E], frequent bool) {
	class := classOf(size)
	if b = u.find(address, class); b == nil {
		if b = u.add(address, class); b == nil {
			return nil, false
		}
	}
	if int(b.uses) < max(most, 1) {
		b.uses++
	}
	return b, b.frequent || u.reached(b, threshold)
}

// reached tells whether a buffer that is not frequent has come to a threshold, and is now.
func (u *Usage[E]) reached(b *Buffer[E], threshold int) bool {
	if threshold == 0 || int(b.uses) < threshold {
		return false
	}
	b.frequent = true
	u.frequent++
	return true
}

// again has a buffer begin another life, with its first use.
func (u *Usage[E]) again(b *Buffer[E]) {
	if b.frequent {
		u.frequent--
	}
	*b = Buffer[E]{address: b.address, class: b.class, uses: 1}
}

func (u *Usage[E]) find(address uint64, class uint8) *Buffer[E] {
	if len(u.slots) == 0 {
		return nil
	}
	for i := u.slot(address, class); ; i++ {
		b := &u.slots[i&(len(u.slots)-1)]
		if b.address == address && b.class == class && b.uses != 0 {
			return b
		}
		if b.uses == 0 {
			return nil
		}
	}
}

// add takes another buffer, which has to be used next, unless it is not worth it: then it is nil.
func (u *Usage[E]) add(address uint64, class uint8) *Buffer[E] {
	n := u.count
	if n == mostBuckets || 2*n >= mostBuckets && u.frequent*fewFrequent < n {
		if u.refused < patience*n {
			u.refused++
			return nil
		}
		u.forget()
	} else if 2*n == len(u.slots) {
		u.resize(max(2*len(u.slots), 2*firstBuckets), func(*Buffer[E]) bool { return true })
	}
	u.refused = 0
	u.count++
	b := u.empty(address, class)
	b.address, b.class = address, class
	return b
}

// empty is the slot for a buffer that is not there.
func (u *Usage[E]) empty(address uint64, class uint8) *Buffer[E] {
	for i := u.slot(address, class); ; i++ {
		if b := &u.slots[i&(len(u.slots)-1)]; b.uses == 0 {
			return b
		}
	}
}

// resize moves some of the buffers to so many slots, a power of 2.
func (u *Usage[E]) resize(n int, some func(*Buffer[E]) bool) {
	old := u.slots
	u.slots = make([]Buffer[E], n)
	u.shift = uint8(64 - bits.Len(uint(n-1)))
	u.count = 0
	for i := range old {
		if b := &old[i]; b.uses != 0 && some(b) {
			*u.empty(b.address, b.class) = *b
			u.count++
		}
	}
}

// forget keeps the buffers that are frequently used, or none if they are most.
func (u *Usage[E]) forget() {
	most := 2*u.frequent >= u.count
	u.resize(len(u.slots), func(b *Buffer[E]) bool { return b.frequent && !most })
	u.frequent = u.count
}

// Len is how many buffers the table has, Frequent how many of them are frequently used.
func (u *Usage[E]) Len() int      { return u.count }
func (u *Usage[E]) Frequent() int { return u.frequent }
