package oracle

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// bits are the bits of an element of any kind. The imaginary part of a complex64 is the upper half of lo, that of a
// complex128 is hi.
type bits struct{ lo, hi uint64 }

// read returns the element of kind at the beginning of b.
func read(kind reduce.Kind, b []byte) bits {
	if kind == reduce.Complex64 {
		return bits{lo: uint64(binary.NativeEndian.Uint32(b)) | uint64(binary.NativeEndian.Uint32(b[4:]))<<32}
	}
	switch kind.Size() {
	case 1:
		return bits{lo: uint64(b[0])}
	case 2:
		return bits{lo: uint64(binary.NativeEndian.Uint16(b))}
	case 4:
		return bits{lo: uint64(binary.NativeEndian.Uint32(b))}
	case 8:
		return bits{lo: binary.NativeEndian.Uint64(b)}
	default:
		return bits{binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])}
	}
}

// write stores the element v of kind at the beginning of b.
func write(kind reduce.Kind, b []byte, v bits) {
	if kind == reduce.Complex64 {
		binary.NativeEndian.PutUint32(b, uint32(v.lo))
		binary.NativeEndian.PutUint32(b[4:], uint32(v.lo>>32))
		return
	}
	switch kind.Size() {
	case 1:
		b[0] = byte(v.lo)
	case 2:
		binary.NativeEndian.PutUint16(b, uint16(v.lo))
	case 4:
		binary.NativeEndian.PutUint32(b, uint32(v.lo))
	case 8:
		binary.NativeEndian.PutUint64(b, v.lo)
	default:
		binary.NativeEndian.PutUint64(b, v.lo)
		binary.NativeEndian.PutUint64(b[8:], v.hi)
	}
}

// number returns v as an element of kind. A complex one has an imaginary part that differs.
func number(kind reduce.Kind, v int64) bits {
	switch kind {
	case reduce.Float32:
		return bits{lo: uint64(math.Float32bits(float32(v)))}
	case reduce.Float64:
		return bits{lo: math.Float64bits(float64(v))}
	case reduce.Complex64:
		return ofComplex64(complex(float32(v), float32(v%5)))
	case reduce.Complex128:
		return ofComplex128(complex(float64(v), float64(v%5)))
	}
	if size := kind.Size(); size < 8 {
		return bits{lo: uint64(v) & (1<<(8*size) - 1)}
	}
	return bits{lo: uint64(v)}
}

// operand returns the i-th operand of a step. Products of floats have few values, which keeps them exact.
func operand(s *Step, i int) bits {
	v := s.Fill + int64(i)
	if s.Call.combines() && s.Op == window.Product && s.Kind >= reduce.Float32 && s.Call != CompareAndSwap {
		unit := [4]int64{1, -1, 1, 2}[uint64(v)%4]
		switch s.Kind {
		case reduce.Complex64:
			return ofComplex64(complex(float32(unit), 0))
		case reduce.Complex128:
			return ofComplex128(complex(float64(unit), 0))
		}
		return number(s.Kind, unit)
	}
	return number(s.Kind, v)
}

func toComplex64(b bits) complex64 {
	return complex(math.Float32frombits(uint32(b.lo)), math.Float32frombits(uint32(b.lo>>32)))
}

func ofComplex64(c complex64) bits {
	return bits{lo: uint64(math.Float32bits(real(c))) | uint64(math.Float32bits(imag(c)))<<32}
}

func toComplex128(b bits) complex128 {
	return complex(math.Float64frombits(b.lo), math.Float64frombits(b.hi))
}

func ofComplex128(c complex128) bits {
	return bits{math.Float64bits(real(c)), math.Float64bits(imag(c))}
}

// numeric are the element types with all arithmetic.
type numeric interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

func arithmetic[T numeric](op window.Op, a, b T) T {
	switch op {
	case window.Sum:
		return a + b
	case window.Product:
		return a * b
	case window.Min:
		return min(a, b)
	default:
		return max(a, b)
	}
}

func complexArithmetic[T complex64 | complex128](op window.Op, a, b T) T {
	if op == window.Sum {
		return a + b
	}
	return a * b
}

// combine returns the result of op on the element was with the operand with.
func combine(kind reduce.Kind, op window.Op, was, with bits) bits {
	switch op {
	case window.NoOp:
		return was
	case window.Replace:
		return with
	case window.And:
		return bits{lo: was.lo & with.lo}
	case window.Or:
		return bits{lo: was.lo | with.lo}
	case window.Xor:
		return bits{lo: was.lo ^ with.lo}
	}
	switch kind {
	case reduce.Int8:
		return bits{lo: uint64(uint8(arithmetic(op, int8(was.lo), int8(with.lo))))}
	case reduce.Int16:
		return bits{lo: uint64(uint16(arithmetic(op, int16(was.lo), int16(with.lo))))}
	case reduce.Int32:
		return bits{lo: uint64(uint32(arithmetic(op, int32(was.lo), int32(with.lo))))}
	case reduce.Int64:
		return bits{lo: uint64(arithmetic(op, int64(was.lo), int64(with.lo)))}
	case reduce.Uint8:
		return bits{lo: uint64(arithmetic(op, uint8(was.lo), uint8(with.lo)))}
	case reduce.Uint16:
		return bits{lo: uint64(arithmetic(op, uint16(was.lo), uint16(with.lo)))}
	case reduce.Uint32:
		return bits{lo: uint64(arithmetic(op, uint32(was.lo), uint32(with.lo)))}
	case reduce.Uint64:
		return bits{lo: arithmetic(op, was.lo, with.lo)}
	case reduce.Float32:
		return bits{lo: uint64(math.Float32bits(arithmetic(op, math.Float32frombits(uint32(was.lo)), math.Float32frombits(uint32(with.lo)))))}
	case reduce.Float64:
		return bits{lo: math.Float64bits(arithmetic(op, math.Float64frombits(was.lo), math.Float64frombits(with.lo)))}
	case reduce.Complex64:
		return ofComplex64(complexArithmetic(op, toComplex64(was), toComplex64(with)))
	default:
		return ofComplex128(complexArithmetic(op, toComplex128(was), toComplex128(with)))
	}
}

// isNaN reports whether an element or a part of it is a NaN.
func isNaN(kind reduce.Kind, b bits) bool {
	switch kind {
	case reduce.Float32:
		return math.IsNaN(float64(math.Float32frombits(uint32(b.lo))))
	case reduce.Float64:
		return math.IsNaN(math.Float64frombits(b.lo))
	case reduce.Complex64:
		v := toComplex64(b)
		return math.IsNaN(float64(real(v))) || math.IsNaN(float64(imag(v)))
	case reduce.Complex128:
		v := toComplex128(b)
		return math.IsNaN(real(v)) || math.IsNaN(imag(v))
	}
	return false
}

// same reports whether two elements are the same. All NaNs are the same: which one a NaN operand yields is not
// defined.
func same(kind reduce.Kind, a, b bits) bool {
	return a == b || isNaN(kind, a) && isNaN(kind, b)
}

// show formats an element.
func show(kind reduce.Kind, b bits) string {
	switch kind {
	case reduce.Int8:
		return fmt.Sprint(int8(b.lo))
	case reduce.Int16:
		return fmt.Sprint(int16(b.lo))
	case reduce.Int32:
		return fmt.Sprint(int32(b.lo))
	case reduce.Int64:
		return fmt.Sprint(int64(b.lo))
	case reduce.Float32:
		return fmt.Sprint(math.Float32frombits(uint32(b.lo)))
	case reduce.Float64:
		return fmt.Sprint(math.Float64frombits(b.lo))
	case reduce.Complex64:
		return fmt.Sprint(toComplex64(b))
	case reduce.Complex128:
		return fmt.Sprint(toComplex128(b))
	}
	return fmt.Sprint(b.lo)
}
