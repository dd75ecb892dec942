package shm

import "slices"

// allocations are those of a range of addresses. The range is used up once before freed pieces are reused, so that
// a late access to freed memory meets other data as seldom as possible.
type allocations struct {
	// next is the start of the part of the range that was never used, end the end of the range.
	next, end int
	// live are the allocations by offset, spare the freed pieces and the gaps of alignment. spare is sorted, and no two
	// pieces touch.
	live  map[int]int
	spare []span
}

type span struct{ offset, length int }

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
func (p *allocations) fresh(length, align int) (int, bool) {
	offset := (p.next + align - 1) &^ (align - 1)
	if offset > p.end-length {
		return 0, false
	}
	if offset > p.next {
		p.keep(span{p.next, offset - p.next})
	}
	p.next = offset + length
	return offset, true
}

// reuse finds room for length bytes among freed pieces.
func (p *allocations) reuse(length, align int) (int, bool) {
	for i, e := range p.spare {
		offset := (e.offset + align - 1) &^ (align - 1)
		skip := offset - e.offset
		if e.length-skip < length {
			continue
		}
		p.spare = slices.Delete(p.spare, i, i+1)
		if skip > 0 {
			p.keep(span{e.offset, skip})
		}
		if rest := e.length - skip - length; rest > 0 {
			p.keep(span{offset + length, rest})
		}
		return offset, true
	}
	return 0, false
}

// place finds room for length bytes, never used if possible.
func (p *allocations) place(length, align int) (int, bool) {
	if offset, ok := p.fresh(length, align); ok {
		return offset, true
	}
	return p.reuse(length, align)
}

// drop ends the allocation at offset, if there is one, and returns its length. Its piece stays unused until keep.
func (p *allocations) drop(offset int) (length int, live bool) {
	length, live = p.live[offset]
	delete(p.live, offset)
	return length, live
}

// keep adds a piece to the spare ones and joins it with those that it touches.
func (p *allocations) keep(e span) {
	i, _ := slices.BinarySearchFunc(p.spare, e.offset, func(other span, offset int) int { return other.offset - offset })
	from, to := i, i
	if i > 0 && p.spare[i-1].offset+p.spare[i-1].length == e.offset {
		from--
		e = span{p.spare[from].offset, p.spare[from].length + e.length}
	}
	if i < len(p.spare) && e.offset+e.length == p.spare[i].offset {
		e.length += p.spare[i].length
		to++
	}
	p.spare = slices.Replace(p.spare, from, to, e)
}
