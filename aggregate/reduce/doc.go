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
// Integers wrap. Min and Max of floats are Go's: a NaN in either gives a NaN, and
// -0 is less than 0.
package reduce
