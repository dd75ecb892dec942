package reduce_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

const (
	workers = 4
	updates = 2000
)

// real are the elements that Go converts numbers to.
type real interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// hammer has every worker apply op, with operand(worker, i) for each i below
// updates, to one element in the middle of three, and gives what becomes of them.
// All pointers are to elements that live until it returns.
func hammer[T reduce.Element](t *testing.T, op reduce.Op, start T, operand func(worker, i int) T, old func(worker int, was T)) [3]T {
	t.Helper()
	update, err := reduce.LookupAtomic(reduce.KindOf[T](), op)
	if err != nil {
		t.Fatal(err)
	}
	elements := row[T]()
	elements[0], elements[1], elements[2] = start, start, start
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			x, was := new(T), new(T)
			for i := range updates {
				*x = operand(worker, i)
				update(unsafe.Pointer(&elements[1]), unsafe.Pointer(x), unsafe.Pointer(was))
				old(worker, *was)
			}
		})
	}
	group.Wait()
	return [3]T(elements[:3])
}

// row is 16 elements. So many are an allocation of their own: what is in one word
// with a narrow element is of the row, and not memory that others use.
func row[T reduce.Element]() *[16]T { return new([16]T) }

func nobody[T any](int, T) {}

func testAtomic[T real](t *testing.T) {
	t.Run(fmt.Sprint(reduce.KindOf[T]()), func(t *testing.T) {
		one := func(int, int) T { return 1 }
		// Of narrow integers the sum goes round, which loses no update either. Sums of
		// floats are exact up to here.
		total := int64(workers * updates)
		if got, want := hammer(t, reduce.Sum, T(3), one, nobody[T]), T(3+total); got != [3]T{3, want, 3} {
			t.Errorf("%d sums of 1 make %v, not %v between two 3", total, got, want)
		}
		ascending := func(worker, i int) T { return T((worker*updates + i) % 100) }
		if got := hammer(t, reduce.Max, T(5), ascending, nobody[T]); got != [3]T{5, 99, 5} {
			t.Errorf("the greatest of 0 to 99 is %v", got)
		}
		if got := hammer(t, reduce.Min, T(98), ascending, nobody[T]); got != [3]T{98, 0, 98} {
			t.Errorf("the least of 0 to 99 is %v", got)
		}
		if got := hammer(t, reduce.Product, T(7), one, nobody[T]); got != [3]T{7, 7, 7} {
			t.Errorf("products with 1 make %v of 7", got)
		}
		if got := hammer(t, reduce.NoOp, T(7), one, func(_ int, was T) {
			if was != 7 {
				t.Errorf("NoOp finds %v", was)
			}
		}); got != [3]T{7, 7, 7} {
			t.Errorf("NoOp makes %v of 7", got)
		}
		testExchange[T](t)
		testSwap[T](t)
	})
}

// testExchange passes tokens about: what is put in by Replace comes out once.
func testExchange[T real](t *testing.T) {
	seen := make([]map[T]int, workers)
	for worker := range seen {
		seen[worker] = map[T]int{}
	}
	token := func(worker, i int) T { return T((worker*updates + i) % 50) }
	last := hammer(t, reduce.Replace, T(60), token, func(worker int, was T) { seen[worker][was]++ })[1]
	counts := map[T]int{last: 1}
	for _, s := range seen {
		for value, n := range s {
			counts[value] += n
		}
	}
	if counts[60] != 1 {
		t.Errorf("the first value came out %d times", counts[60])
	}
	for value := range 50 {
		if counts[T(value)] != workers*updates/50 {
			t.Errorf("%d came out %d times, went in %d times", value, counts[T(value)], workers*updates/50)
		}
	}
}

// testSwap counts to 100 and back to 0 by compare-and-swap, over and over.
func testSwap[T real](t *testing.T) {
	swap, err := reduce.LookupAtomicSwap(reduce.KindOf[T]())
	if err != nil {
		t.Fatal(err)
	}
	elements := row[T]()
	elements[0], elements[2] = 77, 77
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			compare, next, was := new(T), new(T), new(T)
			for done := 0; done < updates; {
				*next = T((int(*compare) + 1) % 100)
				swap(unsafe.Pointer(&elements[1]), unsafe.Pointer(compare), unsafe.Pointer(next), unsafe.Pointer(was))
				if *was == *compare {
					done++
				}
				*compare = *was
			}
		})
	}
	group.Wait()
	if want := [3]T{77, T(workers * updates % 100), 77}; [3]T(elements[:3]) != want {
		t.Errorf("%d swaps make %v, not %v", workers*updates, elements[:3], want)
	}
}

func testAtomicBits[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](t *testing.T) {
	t.Run(fmt.Sprintf("%v bits", reduce.KindOf[T]()), func(t *testing.T) {
		bit := func(worker, _ int) T { return 1 << worker }
		all := T(1<<workers - 1)
		if got := hammer(t, reduce.Or, T(0), bit, nobody[T]); got != [3]T{0, all, 0} {
			t.Errorf("bits that were set are missing: %b", got)
		}
		if got := hammer(t, reduce.And, all, func(worker, _ int) T { return ^(1 << worker) }, nobody[T]); got != [3]T{all, 0, all} {
			t.Errorf("bits that were cleared are there: %b", got)
		}
		// Each worker turns its own bit over, and finds it as it left it.
		var left [workers]T
		if got := hammer(t, reduce.Xor, T(0), bit, func(worker int, was T) {
			if was&(1<<worker) != left[worker] {
				t.Errorf("worker %d's bit was turned over by another", worker)
			}
			left[worker] ^= 1 << worker
		}); got != [3]T{} {
			t.Errorf("bits turned over evenly are %b", got)
		}
	})
}

func TestAtomicsLoseNoUpdate(t *testing.T) {
	testAtomic[int8](t)
	testAtomic[int16](t)
	testAtomic[int32](t)
	testAtomic[int64](t)
	testAtomic[uint8](t)
	testAtomic[uint16](t)
	testAtomic[uint32](t)
	testAtomic[uint64](t)
	testAtomic[float32](t)
	testAtomic[float64](t)
	testAtomicBits[int8](t)
	testAtomicBits[int16](t)
	testAtomicBits[int32](t)
	testAtomicBits[int64](t)
	testAtomicBits[uint8](t)
	testAtomicBits[uint16](t)
	testAtomicBits[uint32](t)
	testAtomicBits[uint64](t)

	got := hammer(t, reduce.Sum, complex64(1i), func(int, int) complex64 { return 1 + 2i }, nobody[complex64])
	if want := complex64(complex(workers*updates, 2*workers*updates+1)); got != [3]complex64{1i, want, 1i} {
		t.Errorf("complex sums are %v, not %v", got, want)
	}
}

// TestNeighborsOfNarrowElements has every worker at an element of its own of one
// word, which the others change at the same time.
func TestNeighborsOfNarrowElements(t *testing.T) {
	testNeighbors[uint8](t)
	testNeighbors[uint16](t)
}

func testNeighbors[T uint8 | uint16](t *testing.T) {
	add, err := reduce.LookupAtomic(reduce.KindOf[T](), reduce.Sum)
	if err != nil {
		t.Fatal(err)
	}
	elements := row[T]()
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			x := T(worker + 1)
			for range updates {
				add(unsafe.Pointer(&elements[worker+1]), unsafe.Pointer(&x), nil)
			}
		})
	}
	group.Wait()
	for i, got := range elements {
		if worker := i - 1; worker >= 0 && worker < workers {
			if want := T(updates % (1 << (8 * unsafe.Sizeof(got))) * (worker + 1)); got != want {
				t.Errorf("element %d of %v is %d, not %d", i, reduce.KindOf[T](), got, want)
			}
		} else if got != 0 {
			t.Errorf("element %d of %v, which nobody changes, is %d", i, reduce.KindOf[T](), got)
		}
	}
}

// TestFetchedSumsAreInOrder: of a counter, the old values of one worker ascend and
// those of all are each number once.
func TestFetchedSumsAreInOrder(t *testing.T) {
	var fetched [workers][]uint64
	hammer(t, reduce.Sum, uint64(0), func(int, int) uint64 { return 1 }, func(worker int, was uint64) {
		fetched[worker] = append(fetched[worker], was)
	})
	var all []uint64
	for _, values := range fetched {
		if !slices.IsSorted(values) {
			t.Error("a worker found the counter lower than before")
		}
		all = append(all, values...)
	}
	slices.Sort(all)
	for i, value := range all {
		if value != uint64(i) {
			t.Fatalf("the %dth number fetched is %d", i, value)
		}
	}
}
