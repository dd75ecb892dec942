//go:build amd64

package reduce

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// A vector combines n bytes of elements.
type vector func(dst, src *byte, n int)

func withAVX2() *functions {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	return with(&[Kinds][ops]vector{
		Int8:       {Sum: sum8AVX2, Min: minInt8AVX2, Max: maxInt8AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Int16:      {Sum: sum16AVX2, Min: minInt16AVX2, Max: maxInt16AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Int32:      {Sum: sum32AVX2, Min: minInt32AVX2, Max: maxInt32AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Int64:      {Sum: sum64AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Uint8:      {Sum: sum8AVX2, Min: minUint8AVX2, Max: maxUint8AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Uint16:     {Sum: sum16AVX2, Min: minUint16AVX2, Max: maxUint16AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Uint32:     {Sum: sum32AVX2, Min: minUint32AVX2, Max: maxUint32AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Uint64:     {Sum: sum64AVX2, And: andAVX2, Or: orAVX2, Xor: xorAVX2},
		Float32:    {Sum: sumFloat32AVX2, Min: minFloat32AVX2, Max: maxFloat32AVX2},
		Float64:    {Sum: sumFloat64AVX2, Min: minFloat64AVX2, Max: maxFloat64AVX2},
		Complex64:  {Sum: sumFloat32AVX2},
		Complex128: {Sum: sumFloat64AVX2},
	})
}

func withAVX512() *functions {
	if x := cpu.X86; !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasAVX512VL {
		return nil
	}
	return with(&[Kinds][ops]vector{
		Int8:       {Sum: sum8AVX512, Min: minInt8AVX512, Max: maxInt8AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Int16:      {Sum: sum16AVX512, Min: minInt16AVX512, Max: maxInt16AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Int32:      {Sum: sum32AVX512, Min: minInt32AVX512, Max: maxInt32AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Int64:      {Sum: sum64AVX512, Min: minInt64AVX512, Max: maxInt64AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Uint8:      {Sum: sum8AVX512, Min: minUint8AVX512, Max: maxUint8AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Uint16:     {Sum: sum16AVX512, Min: minUint16AVX512, Max: maxUint16AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Uint32:     {Sum: sum32AVX512, Min: minUint32AVX512, Max: maxUint32AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Uint64:     {Sum: sum64AVX512, Min: minUint64AVX512, Max: maxUint64AVX512, And: andAVX512, Or: orAVX512, Xor: xorAVX512},
		Float32:    {Sum: sumFloat32AVX512, Min: minFloat32AVX512, Max: maxFloat32AVX512},
		Float64:    {Sum: sumFloat64AVX512, Min: minFloat64AVX512, Max: maxFloat64AVX512},
		Complex64:  {Sum: sumFloat32AVX512},
		Complex128: {Sum: sumFloat64AVX512},
	})
}

// enough is the number of bytes from which on a vector is faster. The AVX2 functions require as many.
const enough = 32

// with returns the plain functions, or those that use a vector where there is one.
func with(vectors *[Kinds][ops]vector) *functions {
	f := plain
	for kind := range Kinds {
		for op, v := range vectors[kind] {
			switch {
			case v == nil:
			case Op(op) == Sum:
				f[kind][op] = sums[kind](v)
			case Op(op) == Xor:
				f[kind][op] = xors[kind.Size()](v)
			default:
				f[kind][op] = long(plain[kind][op], v, kind.Size())
			}
		}
	}
	return &f
}

// piece is how many bytes are combined at a time; the last piece may be almost twice as long. Within a vector function
// the garbage collector cannot stop the goroutine.
const piece = 256 << 10

// apply combines any number of bytes from enough on. It is sound because a vector touches only the bytes that it is
// given, and the pieces cover all of them. It is not inlined because most callers have one element and need a small
// frame.
//
//go:noinline
func (v vector) apply(dst, src unsafe.Pointer, bytes int) {
	for ; bytes >= 2*piece; bytes -= piece {
		v((*byte)(dst), (*byte)(src), piece)
		dst, src = unsafe.Add(dst, piece), unsafe.Add(src, piece)
	}
	v((*byte)(dst), (*byte)(src), bytes)
}

// long uses the vector for many elements and the plain function for few.
func long(short Func, v vector, size int) Func {
	return func(dst, src unsafe.Pointer, n int) {
		if bytes := n * size; bytes >= enough {
			v.apply(dst, src, bytes)
			return
		}
		short(dst, src, n)
	}
}

// longSum and longXor are long with a fast path for single elements, which are the common case. Another call would slow
// it down by a quarter.
func longSum[T Element](v vector) Func {
	return func(dst, src unsafe.Pointer, n int) {
		if n == 1 {
			*(*T)(dst) += *(*T)(src)
			return
		}
		var element T
		if bytes := n * int(unsafe.Sizeof(element)); bytes >= enough {
			v.apply(dst, src, bytes)
			return
		}
		sum[T](dst, src, n)
	}
}

func longXor[T bits](v vector) Func {
	return func(dst, src unsafe.Pointer, n int) {
		if n == 1 {
			*(*T)(dst) ^= *(*T)(src)
			return
		}
		var element T
		if bytes := n * int(unsafe.Sizeof(element)); bytes >= enough {
			v.apply(dst, src, bytes)
			return
		}
		xor[T](dst, src, n)
	}
}

var sums = [Kinds]func(vector) Func{
	Int8: longSum[int8], Int16: longSum[int16], Int32: longSum[int32], Int64: longSum[int64],
	Uint8: longSum[uint8], Uint16: longSum[uint16], Uint32: longSum[uint32], Uint64: longSum[uint64],
	Float32: longSum[float32], Float64: longSum[float64], Complex64: longSum[complex64], Complex128: longSum[complex128],
}

// xors maps the size of an element to its longXor.
var xors = map[int]func(vector) Func{1: longXor[uint8], 2: longXor[uint16], 4: longXor[uint32], 8: longXor[uint64]}
