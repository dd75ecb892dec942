package reduce

import "unsafe"

// A Func sets dst[i] = op(dst[i], src[i]) for n elements. They are aligned to their size, those of 16 bytes to 8. dst
// and src are the same or do not overlap. NoOp does not read src.
type Func func(dst, src unsafe.Pointer, n int)

// A FetchFunc is a Func that also sets old[i] to the previous dst[i]. old overlaps neither dst nor src.
type FetchFunc func(dst, src, old unsafe.Pointer, n int)

// Lookup returns the function that applies op to elements of kind.
func Lookup(kind Kind, op Op) (Func, error) {
	if err := Supported(kind, op); err != nil {
		return nil, err
	}
	return offered[level.Load()][kind][op], nil
}

// LookupFetch returns the fetching form of op on elements of kind.
func LookupFetch(kind Kind, op Op) (FetchFunc, error) {
	apply, err := Lookup(kind, op)
	if err != nil {
		return nil, err
	}
	if op == NoOp {
		return fetchOnly[kind.Size()], nil
	}
	return fetchForms[kind.Size()](apply), nil
}

// slices returns n elements at each of two addresses. It is sound by the preconditions of a Func.
func slices[T Element](dst, src unsafe.Pointer, n int) (d, s []T) {
	return unsafe.Slice((*T)(dst), n), unsafe.Slice((*T)(src), n)
}

func sum[T Element](dst, src unsafe.Pointer, n int) {
	if n == 1 {
		*(*T)(dst) += *(*T)(src)
		return
	}
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] += x
	}
}

func product[T Element](dst, src unsafe.Pointer, n int) {
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] *= x
	}
}

// Ordered is the constraint of elements that have Min and Max.
type Ordered interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

func least[T Ordered](dst, src unsafe.Pointer, n int) {
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] = min(d[i], x)
	}
}

func greatest[T Ordered](dst, src unsafe.Pointer, n int) {
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] = max(d[i], x)
	}
}

// bits is an unsigned element as wide as the one that is combined bit by bit.
type bits interface {
	uint8 | uint16 | uint32 | uint64
}

func and[T bits](dst, src unsafe.Pointer, n int) {
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] &= x
	}
}

func or[T bits](dst, src unsafe.Pointer, n int) {
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] |= x
	}
}

func xor[T bits](dst, src unsafe.Pointer, n int) {
	if n == 1 {
		*(*T)(dst) ^= *(*T)(src)
		return
	}
	d, s := slices[T](dst, src, n)
	for i, x := range s[:len(d)] {
		d[i] ^= x
	}
}

func replace[T Element](dst, src unsafe.Pointer, n int) {
	d, s := slices[T](dst, src, n)
	copy(d, s)
}

// fetch returns the fetching form of apply. It reads the old values first, which is correct because old overlaps
// neither dst nor src and the caller holds the lock.
func fetch[T Element](apply Func) FetchFunc {
	return func(dst, src, old unsafe.Pointer, n int) {
		if n == 1 {
			*(*T)(old) = *(*T)(dst)
		} else {
			o, d := slices[T](old, dst, n)
			copy(o, d)
		}
		apply(dst, src, n)
	}
}

func keepOnly[T Element](dst, _, old unsafe.Pointer, n int) {
	o, d := slices[T](old, dst, n)
	copy(o, d)
}

// fetchOnly has the fetching forms of NoOp and fetchForms those of all other operations, by the size of an element.
var (
	fetchOnly  = map[int]FetchFunc{1: keepOnly[uint8], 2: keepOnly[uint16], 4: keepOnly[uint32], 8: keepOnly[uint64], 16: keepOnly[complex128]}
	fetchForms = map[int]func(Func) FetchFunc{1: fetch[uint8], 2: fetch[uint16], 4: fetch[uint32], 8: fetch[uint64], 16: fetch[complex128]}
)

func arithmetic[T Element]() (f [ops]Func) {
	f[Sum], f[Product], f[Replace], f[NoOp] = sum[T], product[T], replace[T], func(unsafe.Pointer, unsafe.Pointer, int) {}
	return f
}

func ordered[T Ordered]() (f [ops]Func) {
	f = arithmetic[T]()
	f[Min], f[Max] = least[T], greatest[T]
	return f
}

func integer[T Ordered, B bits]() (f [ops]Func) {
	f = ordered[T]()
	f[And], f[Or], f[Xor] = and[B], or[B], xor[B]
	return f
}

// plain has the functions in Go, of every kind and operation.
var plain = functions{
	Int8: integer[int8, uint8](), Int16: integer[int16, uint16](), Int32: integer[int32, uint32](), Int64: integer[int64, uint64](),
	Uint8: integer[uint8, uint8](), Uint16: integer[uint16, uint16](), Uint32: integer[uint32, uint32](), Uint64: integer[uint64, uint64](),
	Float32: ordered[float32](), Float64: ordered[float64](), Complex64: arithmetic[complex64](), Complex128: arithmetic[complex128](),
}
