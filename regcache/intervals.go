package regcache

import "github.com/google/btree"

// An interval is the addresses [from, to) and their entry.
type interval[R any] struct {
	from, to uint64
	entry    *Entry[R]
}

// intervals is a set of intervals that do not overlap. An entry may have several: the rest of what it had.
type intervals[R any] struct {
	tree *btree.BTreeG[interval[R]]
}

// degree is the degree of the tree, whose nodes have at most 31 intervals.
const degree = 16

func newIntervals[R any]() intervals[R] {
	return intervals[R]{btree.NewG(degree, func(a, b interval[R]) bool { return a.from < b.from })}
}

// at returns the interval that contains an address.
func (s intervals[R]) at(address uint64) (found interval[R], ok bool) {
	s.tree.DescendLessOrEqual(interval[R]{from: address}, func(i interval[R]) bool {
		found, ok = i, address < i.to
		return false
	})
	return found, ok
}

// each calls do with every interval that overlaps a range, in ascending order. do must not change the set.
func (s intervals[R]) each(from, to uint64, do func(interval[R])) {
	if first, ok := s.at(from); ok {
		from = first.from
	}
	s.tree.AscendRange(interval[R]{from: from}, interval[R]{from: to}, func(i interval[R]) bool {
		do(i)
		return true
	})
}

// cut removes a range: intervals that overlap it in part are shortened, or split.
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
