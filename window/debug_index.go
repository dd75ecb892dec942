package window

import (
	"math/bits"

	"github.com/google/btree"
)

// An extent is the bytes from first to before last, at least one, of a part or of memory.
type extent struct{ first, last uint64 }

// meets reports whether two extents share bytes.
func (e extent) meets(other extent) bool { return e.first < other.last && other.first < e.last }

// size returns the logarithm of the number of bytes, rounded down.
func (e extent) size() int { return bits.Len64(e.last-e.first) - 1 }

// An index finds an extent among many that overlaps another one. Its entries are in order of their sizes, rounded to
// powers of two, and then of addresses. Extents of one size that overlap another extent begin less than twice that size
// before it. So meets looks at few entries in vain.
type index[T any] struct {
	tree *btree.BTreeG[entry[T]]
	// sizes has a bit for each size that there has been.
	sizes uint64
	// ages has the entries by their generations, for take. It is nil until the first take of a generation.
	ages *btree.BTreeG[age]
	// looked counts the entries that meets has looked at.
	looked int
}

// An entry has the value with which an extent was first added. It counts how many times the extent was added, and has
// its generation.
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

// indexOf returns the index of a key, which is new if there was none.
func indexOf[K comparable, T any](all map[K]*index[T], key K) *index[T] {
	if all[key] == nil {
		all[key] = newIndex[T]()
	}
	return all[key]
}

// add adds an extent and returns the value with which it was first added. An extent that is there keeps its generation.
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

// raise sets a later generation of an extent that is there.
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

// take removes the entries up to and including a generation, however often they were added, and returns their values.
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

// at returns the value with which exactly this extent was added.
func (x *index[T]) at(e extent) (T, bool) {
	one, known := x.tree.Get(entry[T]{extent: e})
	return one.of, known
}

// meets returns an extent that overlaps another one, and its value.
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
