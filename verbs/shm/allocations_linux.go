package shm

import "slices"

// allocations divides a range of addresses. The range is used up once before freed pieces are reused, so that
// a late access to freed memory meets other data as seldom as possible.
type allocations struct {
	// next is the start of the part of the range that was never used, end the end of the range.
	next, end int
	// live are the allocations by offset, spare the freed pieces and the gaps of alignment. spare is sorted, and no two
	// pieces touch.
	live  map[int]int
	spare []piece
}

type piece struct{ offset, length int }

func newAllocations(start, end int) allocations {
	return allocations{next: start, end: end, live: make(map[int]int)}
}

// wholePages returns n rounded up to pages, and its alignment. n is not within a page of overflow.
func wholePages(n int) (length, align int) {
	length = (n + pageBytes - 1) &^ (pageBytes - 1)
	if length >= hugePageBytes {
		return length, hugePageBytes
	}
	return length, pageBytes
}

// fresh finds room for length bytes that was never used.
func (a *allocations) fresh(length, align int) (int, bool) {
	offset := (a.next + align - 1) &^ (align - 1)
	if offset > a.end-length {
		return 0, false
	}
	if offset > a.next {
		a.keep(piece{a.next, offset - a.next})
	}
	a.next = offset + length
	return offset, true
}

// reuse finds room for length bytes among freed pieces.
func (a *allocations) reuse(length, align int) (int, bool) {
	for i, e := range a.spare {
		offset := (e.offset + align - 1) &^ (align - 1)
		skip := offset - e.offset
		if e.length-skip < length {
			continue
		}
		a.spare = slices.Delete(a.spare, i, i+1)
		if skip > 0 {
			a.keep(piece{e.offset, skip})
		}
		if rest := e.length - skip - length; rest > 0 {
			a.keep(piece{offset + length, rest})
		}
		return offset, true
	}
	return 0, false
}

// place finds room for length bytes, never used if possible.
func (a *allocations) place(length, align int) (int, bool) {
	if offset, ok := a.fresh(length, align); ok {
		return offset, true
	}
	return a.reuse(length, align)
}

// drop ends the allocation at offset, if there is one, and returns its length. Its piece stays unused until keep.
func (a *allocations) drop(offset int) (length int, live bool) {
	length, live = a.live[offset]
	delete(a.live, offset)
	return length, live
}

// keep adds a piece to the spare ones and joins it with those that it touches.
func (a *allocations) keep(e piece) {
	i, _ := slices.BinarySearchFunc(a.spare, e.offset, func(other piece, offset int) int { return other.offset - offset })
	from, to := i, i
	if i > 0 && a.spare[i-1].offset+a.spare[i-1].length == e.offset {
		from--
		e = piece{a.spare[from].offset, a.spare[from].length + e.length}
	}
	if i < len(a.spare) && e.offset+e.length == a.spare[i].offset {
		e.length += a.spare[i].length
		to++
	}
	a.spare = slices.Replace(a.spare, from, to, e)
}
