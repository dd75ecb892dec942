package reduce_test

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

func Example() {
	window := []float64{1, 2, 3}
	origin := []float64{10, 20, 30}
	sum, err := reduce.Lookup(reduce.KindOf[float64](), reduce.Sum)
	if err != nil {
		fmt.Println(err)
		return
	}
	sum(unsafe.Pointer(&window[0]), unsafe.Pointer(&origin[0]), len(window))
	fmt.Println(window)
	// Output: [11 22 33]
}

// Least of floats in Go alone, whatever the processor has.
func ExampleUse() {
	previous, err := reduce.Use(reduce.Plain)
	if err != nil {
		fmt.Println(err)
		return
	}
	least, _ := reduce.Lookup(reduce.Float64, reduce.Min)
	if _, err := reduce.Use(previous); err != nil {
		fmt.Println(err)
		return
	}
	window := []float64{1, 0, math.NaN(), math.Inf(-1), 7}
	origin := []float64{2, math.Copysign(0, -1), 4, math.NaN(), 6}
	least(unsafe.Pointer(&window[0]), unsafe.Pointer(&origin[0]), len(window))
	fmt.Println(window)
	// Output: [1 -0 NaN NaN 6]
}

func ExampleLookupAtomic() {
	counter, one := uint64(41), uint64(1)
	var old uint64
	add, err := reduce.LookupAtomic(reduce.Uint64, reduce.Sum)
	if err != nil {
		fmt.Println(err)
		return
	}
	add(unsafe.Pointer(&counter), unsafe.Pointer(&one), unsafe.Pointer(&old))
	fmt.Println(old, counter)
	// Output: 41 42
}

func ExampleLookup_unsupported() {
	_, err := reduce.Lookup(reduce.Complex128, reduce.Min)
	fmt.Println(err)
	// Output: reduce: operation not for this element type: Min of complex128; allowed are Sum, Product, Replace and NoOp
}
