package regcache

import (
	"math"
	"math/bits"
)

const (
	// Floor is the smallest buffer whose uses are counted, in bytes. Shorter buffers are sent to the card inline.
	Floor = 128
	// firstBuckets and mostBuckets are the initial and the maximum number of buffers of a table.
	firstBuckets = 1 << 6
	mostBuckets  = 1 << 20
	// fewFrequent: a table that is half as large as the largest stops growing if fewer than 1/fewFrequent of its
	// buffers are frequently used (paper B, 3.4).
	fewFrequent = 5
	// patience is how many uses per buffer of the table it rejects before it forgets the buffers that are not frequent.
	patience = 4
)

// Usage counts the uses of buffers. A buffer is identified by its address and the class of its size (paper B, 3.3).
// Each buffer has a value of type E, which belongs to the caller. The zero value is an empty table. It must not be used
// by several goroutines at once.
//
// Usage is a hash table that doubles as it fills, up to 2^20 buffers. The paper's table has chains. Here a slot holds
// the index of a buffer and more bits of its hash, which avoid most false comparisons. It is the slot of the hash, or
// the first empty one after it. Buffers are stored in the order of their first uses, which is often the order of later
// uses.
//
// From half the maximum size on, the table takes no new buffers while less than a fifth of its buffers are frequently
// used (3.4). Programs change: after rejecting for some time, the table forgets the buffers that are not frequent.
type Usage[E any] struct {
	// slots hold the index of a buffer, from 1 on, in the lower bits and its tag in the others. 0 is an empty slot. At
	// least half of the slots are empty.
	slots   []uint32
	buffers []Buffer[E]
	// shift is the shift that turns a hash into the number of a slot.
	shift uint8
	// frequent is the number of buffers that have reached their threshold.
	frequent int
	// rejected is the number of uses rejected since the last buffer was added.
	rejected int
}

// A Buffer is the record of a buffer that was used.
type Buffer[E any] struct {
	address uint64
	// Value belongs to the caller.
	Value E
	// uses counts the uses of the buffer's current life. last is the time of the last use, by the learner of its class.
	uses, last uint32
	class      uint8
	// life is 1 + the index of its record in the learner of its class, or 0 if it has none.
	life uint8
	// frequent is set if the buffer has reached the threshold.
	frequent bool
	// waits counts the uses, since the cache's time since, in which the buffer was not registered because others would
	// have to be evicted. It is rejected if the buffer cannot be registered, and 0 if nothing prevents its
	// registration.
	waits uint8
	since uint32
}

// rejected is the value of waits for a buffer that cannot be registered.
const rejected = math.MaxUint8

// classOf returns the class of a size: the sizes up to the next power of 2.
func classOf(size int) uint8 { return uint8(bits.Len(uint(size - 1))) }

// indexBits is the number of bits of a slot for the index of a buffer, enough for the largest table.
const indexBits = 21

// golden is 2^64 divided by the golden ratio, and odd. Multiples of it spread over the upper bits.
const golden = 0x9e3779b97f4a7c15

func hash(address uint64, class uint8) uint64 { return (address ^ uint64(class)<<56) * golden }

// tag returns the part of a hash that a slot stores: the bits below those that select a slot of the largest table.
func tag(hash uint64) uint32 { return uint32(hash>>(32-indexBits)) &^ (1<<indexBits - 1) }

// Use counts a use of a buffer of size bytes, at least 1. It counts to at most most. It reports whether the buffer is
// frequently used, that is, whether it ever reached threshold uses; no buffer reaches a threshold of 0. b is valid
// until the next Use. b is nil, and frequent false, if the table has no room for the buffer.
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

// reached marks a buffer as frequent, and reports true, if it has reached a threshold.
func (u *Usage[E]) reached(b *Buffer[E], threshold int) bool {
	if threshold == 0 || int(b.uses) < threshold {
		return false
	}
	b.frequent = true
	u.frequent++
	return true
}

// again starts another life of a buffer, with its first use.
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
		if s&^(1<<indexBits-1) != tag(h) {
			continue
		}
		if b := &u.buffers[s&(1<<indexBits-1)-1]; b.address == address && b.class == class {
			return b
		}
	}
}

// add adds a buffer, which the caller must use next. It returns nil if the table rejects the buffer.
func (u *Usage[E]) add(address uint64, class uint8) *Buffer[E] {
	n := len(u.buffers)
	if n == mostBuckets || 2*n >= mostBuckets && u.frequent*fewFrequent < n {
		if u.rejected < patience*n {
			u.rejected++
			return nil
		}
		u.forget()
	} else if 2*n == len(u.slots) {
		u.slots = make([]uint32, max(2*len(u.slots), 2*firstBuckets))
		u.shift = uint8(64 - bits.Len(uint(len(u.slots)-1)))
		u.place()
	}
	u.rejected = 0
	u.buffers = append(u.buffers, Buffer[E]{address: address, class: class})
	u.put(len(u.buffers))
	return &u.buffers[len(u.buffers)-1]
}

// put stores the index of a buffer in an empty slot.
func (u *Usage[E]) put(place int) {
	b := &u.buffers[place-1]
	h := hash(b.address, b.class)
	i := int(h >> (u.shift & 63))
	for u.slots[i&(len(u.slots)-1)] != 0 {
		i++
	}
	u.slots[i&(len(u.slots)-1)] = tag(h) | uint32(place)
}

// place stores the indices of all buffers in the slots, which are empty.
func (u *Usage[E]) place() {
	for i := range u.buffers {
		u.put(i + 1)
	}
}

// forget keeps the buffers that are frequently used, or none if most are.
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

// Len returns the number of buffers in the table, Frequent the number of those that are frequently used.
func (u *Usage[E]) Len() int      { return len(u.buffers) }
func (u *Usage[E]) Frequent() int { return u.frequent }
