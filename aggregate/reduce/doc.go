// Package reduce combines elements: it is how an accumulate is applied to window
// memory, whichever way it came.
//
//	sum, err := reduce.Lookup(reduce.Float64, reduce.Sum)
//	sum(unsafe.Pointer(&window[0]), unsafe.Pointer(&origin[0]), len(origin))
//
// A [Func] combines many elements and is atomic towards nobody: its caller holds a
// lock. An [AtomicFunc] combines one element by the processor's atomic
// instructions. Functions are looked up once, when a window is made, and called
// without a further look at type or operation. They keep no pointers.
//
// # Results
//
// Integers wrap. Min and Max of floats are Go's: a NaN in either gives a NaN, and
// -0 is less than 0. So they do not depend on the order in which ranks' elements
// arrive, which comparing alone would not give. Which NaN comes of a NaN is not said.
//
// # Levels
//
// Sum, Min, Max, And, Or and Xor of many elements are done by the vector
// instructions of the processor if it has AVX2 or AVX-512, as [Level] tells and
// [Use] sets for the lookups that follow it. Whatever the level, results are the
// same, bit for bit but for NaNs. Least and greatest of 64-bit integers need
// AVX-512. Each vector function has its plain twin in Go, which does Product too,
// few elements, and everything on other processors.
//
// The vector functions are written by the program in the directory gen, a module
// of its own that no user of this package needs; go generate runs it.
package reduce

import _ "github.com/onesided/rma/internal/platform"
