package window

import (
	"math/bits"

	"github.com/google/btree"
)

// An extent is the bytes from first to before last: some, of a part or of memory.
type extent struct{ first, last uint64 }

// meets tells whether two extents share bytes.
func (e extent) meets(other extent) bool { return e.first < other.last && other.first < e.last }

// size is the logarithm of the number of bytes, rounded down.
func (e extent) size() int { return bits.Len64(e.last-e.first) - 1 }

// An index finds which of many extents meet another one. They are in order of their sizes, by powers of two, and then of
// addresses: those of one size that meet an extent begin less than twice that size before it. So few others are looked at.
type index[T any] struct {
	tree *btree.BTreeG[entry[T]]
	// sizes are those that there have been, a bit each.
	sizes uint64
	// looked counts the entries that meets has looked at.
	looked int
}

// An entry is what an extent was added with at first, and how many times it was added.
type entry[T any] struct {
	extent
	times int
	of    T
}

func newIndex[T any]() *index[T] {
	return &index[T]{tree: btree.NewG(16, func(a, b entry[T]) bool {
		if sizeA, sizeB := a.size(), b.size(); sizeA != sizeB {
			return sizeA < sizeB
		}
		return a.first < b.first || a.first == b.first && a.last < b.last
	})}
}

// indexOf is the index of a key, a new one if it has none.
func indexOf[K comparable, T any](all map[K]*index[T], key K) *index[T] {
	if all[key] == nil {
		all[key] = newIndex[T]()
	}
	return all[key]
}

// add adds an extent, and is what it was added with at first.
func (x *index[T]) add(e extent, of T) T {
	x.sizes |= 1 << e.size()
	one, _ := x.tree.Get(entry[T]{extent: e})
	if one.times == 0 {
		one = entry[T]{extent: e, of: of}
	}
	one.times++
	x.tree.ReplaceOrInsert(one)
	return one.of
}

// remove undoes an add of an extent that is there.
func (x *index[T]) remove(e extent) {
	one, _ := x.tree.Get(entry[T]{extent: e})
	if one.times--; one.times <= 0 {
		x.tree.Delete(one)
		return
	}
	x.tree.ReplaceOrInsert(one)
}

// at is what this very extent was added with.
func (x *index[T]) at(e extent) (T, bool) {
	one, known := x.tree.Get(entry[T]{extent: e})
	return one.of, known
}

// meets is an extent that meets another one, and what it was added with.
func (x *index[T]) meets(e extent) (of T, met extent, found bool) {
	for left := x.sizes; left != 0 && !found; left &= left - 1 {
		size := bits.TrailingZeros64(left)
		least := extent{first: e.first - min(e.first, 2<<size-1)}
		least.last = least.first + 1<<size
		x.tree.AscendGreaterOrEqual(entry[T]{extent: least}, func(one entry[T]) bool {
			x.looked++
			if one.first >= e.last || one.size() != size {
				return false
			}
			if one.meets(e) {
				of, met, found = one.of, one.extent, true
			}
			return !found
		})
	}
	return of, met, found
}
