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
	// ages are the entries by their generations, for who takes the old ones: nil until somebody does.
	ages *btree.BTreeG[age]
	// looked counts the entries that meets has looked at.
	looked int
}

// An entry is what an extent was added with at first, how many times it was added, and the generation that it is of.
type entry[T any] struct {
	extent
	times      int
	generation uint64
	of         T
}

// An age is the generation of an entry.
type age struct {
	generation uint64
	extent
}

// before is the order of an index.
func (e extent) before(other extent) bool {
	if size, sizeOther := e.size(), other.size(); size != sizeOther {
		return size < sizeOther
	}
	return e.first < other.first || e.first == other.first && e.last < other.last
}

func newIndex[T any]() *index[T] {
	return &index[T]{tree: btree.NewG(16, func(a, b entry[T]) bool { return a.before(b.extent) })}
}

// indexOf is the index of a key, a new one if it has none.
func indexOf[K comparable, T any](all map[K]*index[T], key K) *index[T] {
	if all[key] == nil {
		all[key] = newIndex[T]()
	}
	return all[key]
}

// add adds an extent, and is what it was added with at first. An entry that is there stays of its generation.
func (x *index[T]) add(e extent, of T, generation uint64) T {
	x.sizes |= 1 << e.size()
	one, _ := x.tree.Get(entry[T]{extent: e})
	if one.times == 0 {
		one = entry[T]{extent: e, of: of, generation: generation}
	}
	one.times++
	x.put(one)
	return one.of
}

// raise has an extent that is there be of a later generation.
func (x *index[T]) raise(e extent, generation uint64) {
	if one, known := x.tree.Get(entry[T]{extent: e}); known && one.generation < generation {
		one.generation = generation
		x.put(one)
	}
}

// remove undoes an add of an extent that is there.
func (x *index[T]) remove(e extent) {
	one, known := x.tree.Get(entry[T]{extent: e})
	if !known {
		return
	}
	if one.times--; one.times == 0 {
		x.drop(e)
		return
	}
	x.put(one)
}

func (x *index[T]) put(one entry[T]) {
	was, known := x.tree.ReplaceOrInsert(one)
	if x.ages == nil || known && was.generation == one.generation {
		return
	}
	if known {
		x.ages.Delete(age{was.generation, one.extent})
	}
	x.ages.ReplaceOrInsert(age{one.generation, one.extent})
}

func (x *index[T]) drop(e extent) T {
	one, known := x.tree.Delete(entry[T]{extent: e})
	if x.ages != nil && known {
		x.ages.Delete(age{one.generation, e})
	}
	return one.of
}

// take drops the entries up to a generation, however often they were added, and gives what they were added with.
func (x *index[T]) take(generation uint64) (taken []T) {
	if generation == lastGeneration {
		x.tree.Ascend(func(one entry[T]) bool {
			taken = append(taken, one.of)
			return true
		})
		*x = *newIndex[T]()
		return taken
	}
	if x.ages == nil {
		x.ages = btree.NewG(16, func(a, b age) bool {
			return a.generation < b.generation || a.generation == b.generation && a.before(b.extent)
		})
		x.tree.Ascend(func(one entry[T]) bool {
			x.ages.ReplaceOrInsert(age{one.generation, one.extent})
			return true
		})
	}
	for {
		oldest, some := x.ages.Min()
		if !some || oldest.generation > generation {
			return taken
		}
		taken = append(taken, x.drop(oldest.extent))
	}
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
