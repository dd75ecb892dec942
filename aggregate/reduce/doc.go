// Package reduce combines elements of window memory, with vector instructions where the processor has them; it is for
// layers that apply accumulates.
//
//	sum, err := reduce.Lookup(reduce.Float64, reduce.Sum)
//	sum(unsafe.Pointer(&window[0]), unsafe.Pointer(&origin[0]), len(origin))
//
// A [Func] combines many elements and is not atomic: its caller holds a lock. An [AtomicFunc] combines one element by
// the processor's atomic instructions. Functions are looked up once, when a window is made. Calls do not check type or
// operation again. Functions keep no pointers.
//
// # Results
//
// Integers wrap around. Min and Max of floats are those of Go: a NaN in either operand gives a NaN, and -0 is less than
// 0. So the result does not depend on the order in which ranks' elements arrive, as it would with a plain comparison.
// The bits of a resulting NaN are unspecified.
//
// # Levels
//
// Sum, Min, Max, And, Or and Xor of many elements use the processor's vector instructions if it has AVX2 or AVX-512.
// [Levels] returns the available levels, and [Use] sets the level of later lookups. The results are the same at every
// level, bit for bit except for NaNs. Min and Max of 64-bit integers need AVX-512. Every vector function has a plain
// equivalent in Go. The plain functions also do Product, small numbers of elements, and everything on other processors.
//
// The vector functions are written by the program in the directory gen, which go generate runs. It is a separate module
// that users of this package do not need.
package reduce

import _ "github.com/onesided/rma/internal/platform"
