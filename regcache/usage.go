package regcache

import (
	"math"
	"math/bits"
)

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
// has chains; here the slot of a buffer's hash, or the first empty one behind that, has its place among all,
// and some more bits of the hash, so that no other is looked at in vain. They are in the order of their
// first uses, which is often that of the later ones. With each goes what its user notes of it, an
// E. The zero value is an empty table; it is not for several goroutines at once.
//
// Once it is half full it takes no more buffers while less than a fifth of those that it has are
// frequently used (3.4). A program may change: after some time of refusing, the table forgets
// the others.
type Usage[E any] struct {
	// slots have a buffer's place, from 1 on, in their lower bits, and its tag in the others. 0 is empty,
	// as at least every other is.
	slots   []uint32
	buffers []Buffer[E]
	// shift is what a hash is shifted by to be the number of a slot.
	shift uint8
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
	// frequent is whether it has come to the threshold.
	frequent bool
	// waits is for how many uses, since that time by its cache, it is not registered because others
	// would have to go for it; refused if it can't be, 0 if nothing is in its way.
	waits uint8
	since uint32
}

// refused stands for uses that a buffer that can't be registered waits for.
const refused = math.MaxUint8

// classOf is the class of sizes up to the next power of 2.
func classOf(size int) uint8 { return uint8(bits.Len(uint(size - 1))) }

// places is how many bits of a slot are the place of a buffer: as many as the largest table needs.
const places = 21

// golden is 2^64 divided by the golden ratio, and odd: multiples of it spread over the upper bits.
const golden = 0x9e3779b97f4a7c15

func hash(address uint64, class uint8) uint64 { return (address ^ uint64(class)<<56) * golden }

// tag is what a slot has of a hash: the bits below those that say which slot of the largest table it is.
func tag(hash uint64) uint32 { return uint32(hash>>(32-places)) &^ (1<<places - 1) }

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
	if int(b.uses) < most {
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
	h := hash(address, class)
	for i := int(h >> (u.shift & 63)); ; i++ {
		s := u.slots[i&(len(u.slots)-1)]
		if s == 0 {
			return nil
		}
		if s&^(1<<places-1) != tag(h) {
			continue
		}
		if b := &u.buffers[s&(1<<places-1)-1]; b.address == address && b.class == class {
			return b
		}
	}
}

// add takes another buffer, which has to be used next, unless it is not worth it: then it is nil.
func (u *Usage[E]) add(address uint64, class uint8) *Buffer[E] {
	n := len(u.buffers)
	if n == mostBuckets || 2*n >= mostBuckets && u.frequent*fewFrequent < n {
		if u.refused < patience*n {
			u.refused++
			return nil
		}
		u.forget()
	} else if 2*n == len(u.slots) {
		u.slots = make([]uint32, max(2*len(u.slots), 2*firstBuckets))
		u.shift = uint8(64 - bits.Len(uint(len(u.slots)-1)))
		u.place()
	}
	u.refused = 0
	u.buffers = append(u.buffers, Buffer[E]{address: address, class: class})
	u.put(len(u.buffers))
	return &u.buffers[len(u.buffers)-1]
}

// put has an empty slot say where a buffer is.
func (u *Usage[E]) put(place int) {
	b := &u.buffers[place-1]
	h := hash(b.address, b.class)
	i := int(h >> (u.shift & 63))
	for u.slots[i&(len(u.slots)-1)] != 0 {
		i++
	}
	u.slots[i&(len(u.slots)-1)] = tag(h) | uint32(place)
}

// place has the slots, which are empty, say where the buffers are.
func (u *Usage[E]) place() {
	for i := range u.buffers {
		u.put(i + 1)
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
	clear(u.slots)
	u.place()
}

// Len is how many buffers the table has, Frequent how many of them are frequently used.
func (u *Usage[E]) Len() int      { return len(u.buffers) }
func (u *Usage[E]) Frequent() int { return u.frequent }
