package window

import (
	"hash/maphash"
	"slices"
)

// A buffer is memory of the program that operations on a target use.
type buffer struct {
	*caller
	memory []byte
	// puts is set if puts write from the buffer. sum is then its checksum, and changed is set if a later put has found
	// another one. Otherwise operations read into the buffer. there is its content while it is poisoned.
	puts    bool
	sum     uint64
	changed bool
	there   []byte
	// used is the number of its last use.
	used uint64
	// over is set once it belongs to the program again.
	over bool
	// of is the access that reads into it.
	of *access
}

// giveBack returns the buffer to the program. It reports whether the program has left it alone, as far as poison shows
// that.
func (b *buffer) giveBack() (alone bool) {
	b.over = true
	if b.there == nil {
		return true
	}
	alone = !slices.ContainsFunc(b.memory, func(one byte) bool { return one != poison })
	copy(b.memory, b.there)
	return alone
}

// poison replaces results that are not valid yet.
const poison = 0xdb

// use records the caller of an access, and its buffer.
func (d *debugging) use(a *access, by caller) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.callers == nil {
		d.callers = make(map[caller]*caller)
		d.origins, d.results = make(map[int]*index[*buffer]), make(map[int]*index[*buffer])
	}
	if a.caller = d.callers[by]; a.caller == nil {
		a.caller = &caller{by.rank, by.call, by.site}
		d.callers[by] = a.caller
	}
	a.generation = d.generation
	b := a.buffer
	if b == nil {
		return nil
	}
	b.caller = a.caller
	at := extentOf(b.memory)
	if first, met := meetsAny(d.results, at); met && b.puts {
		return a.clash("a put writes from memory that an earlier operation reads into, before that operation was complete", first.caller)
	} else if met {
		return a.clash("two operations read into the same memory, and the first was not complete", first.caller)
	}
	if b.puts {
		b.sum = maphash.Bytes(seed, b.memory)
		sum := b.sum
		b = indexOf(d.origins, a.target).add(at, b, a.generation)
		b.changed = b.changed || b.sum != sum
		a.buffer = b
	} else {
		if first, met := meetsAny(d.origins, at); met {
			return a.clash("an operation reads into memory that a put writes from, before the put was complete", first.caller)
		}
		b.of = a
		indexOf(d.results, a.target).add(at, b, a.generation)
	}
	return nil
}

// meetsAny returns a buffer that memory overlaps.
func meetsAny(buffers map[int]*index[*buffer], memory extent) (*buffer, bool) {
	for _, all := range buffers {
		if b, _, met := all.meets(memory); met {
			return b, true
		}
	}
	return nil, false
}

// release forgets the buffer of an access.
func (d *debugging) release(a *access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a.buffer != nil {
		d.forget(a.buffer, a.target)
	}
}

// forget forgets one use of a buffer, if it is still in use.
func (d *debugging) forget(b *buffer, target int) {
	if all := d.inUse(b, target); all != nil {
		all.remove(extentOf(b.memory))
	}
}

// inUse returns the index that has a buffer, or nil if it is not in use.
func (d *debugging) inUse(b *buffer, target int) *index[*buffer] {
	buffers := d.results
	if b.puts {
		buffers = d.origins
	}
	if all := buffers[target]; all != nil {
		if now, _ := all.at(extentOf(b.memory)); now == b {
			return all
		}
	}
	return nil
}

// hide poisons what an operation on mapped memory has read, until a call completes it. It does nothing if another
// goroutine has completed it already.
func (d *debugging) hide(a *access) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := a.buffer
	if b == nil || b.puts || b.over {
		return
	}
	b.there = slices.Clone(b.memory)
	for i := range b.memory {
		b.memory[i] = poison
	}
}

// take returns and forgets the buffers of a target, or of all if target is -1, up to and including a generation.
func take(buffers map[int]*index[*buffer], target int, generation uint64) (taken []*buffer) {
	for of, all := range buffers {
		if target >= 0 && of != target {
			continue
		}
		taken = append(taken, all.take(generation)...)
		if all.tree.Len() == 0 {
			delete(buffers, of)
		}
	}
	return taken
}

// ownBuffers leaves the buffers of the operation that was issued with this memory to a Request. It returns the access
// of the operation if that only reads.
func (c *core) ownBuffers(memory []byte) (read *access) {
	if c.watch == nil || c.watch.debug == nil || len(memory) == 0 {
		return nil
	}
	d := c.watch.debug
	d.mu.Lock()
	defer d.mu.Unlock()
	var last *buffer
	var of int
	for _, buffers := range []map[int]*index[*buffer]{d.origins, d.results} {
		for target, all := range buffers {
			if b, known := all.at(extentOf(memory)); known && (last == nil || b.used > last.used) {
				last, of = b, target
			}
		}
	}
	if last == nil {
		return nil
	}
	if !last.puts {
		last.giveBack()
	}
	d.forget(last, of)
	if last.of != nil && last.of.reads {
		return last.of
	}
	return nil
}
