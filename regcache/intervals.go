package regcache

import "github.com/google/btree"

// An interval is addresses from one up to another, and the entry that has them.
type interval[R any] struct {
	from, to uint64
	entry    *Entry[R]
}

// intervals do not overlap. An entry may have several of them: what is left of it.
type intervals[R any] struct {
	tree *btree.BTreeG[interval[R]]
}

// degree is of the tree: nodes of up to 31 intervals.
const degree = 16

func newIntervals[R any]() intervals[R] {
	return intervals[R]{btree.NewG(degree, func(a, b interval[R]) bool { return a.from < b.from })}
}

// at gives the interval that has an address.
func (s intervals[R]) at(address uint64) (found interval[R], ok bool) {
	s.tree.DescendLessOrEqual(interval[R]{from: address}, func(i interval[R]) bool {
		found, ok = i, address < i.to
		return false
	})
	return found, ok
}

// each calls do with the intervals that have something of an extent, the first first. It must not
// change them.
func (s intervals[R]) each(from, to uint64, do func(interval[R])) {
	if first, ok := s.at(from); ok {
		from = first.from
	}
	s.tree.AscendRange(interval[R]{from: from}, interval[R]{from: to}, func(i interval[R]) bool {
		do(i)
		return true
	})
}

// cut takes an extent out: intervals that have only a part in it are shortened, or split.
func (s intervals[R]) cut(from, to uint64, scratch []interval[R]) []interval[R] {
	scratch = scratch[:0]
	s.each(from, to, func(i interval[R]) { scratch = append(scratch, i) })
	for _, i := range scratch {
		s.remove(i)
		if i.from < from {
			s.add(interval[R]{i.from, from, i.entry})
		}
		if to < i.to {
			s.add(interval[R]{to, i.to, i.entry})
		}
	}
	return scratch
}

func (s intervals[R]) add(i interval[R]) {
	i.entry.pieces++
	s.tree.ReplaceOrInsert(i)
}

func (s intervals[R]) remove(i interval[R]) {
	i.entry.pieces--
	i.entry.whole = false
	s.tree.Delete(i)
}
