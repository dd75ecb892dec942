package reduce

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/onesided/rma/internal/errtext"
)

// An Element is a type that can be combined: a number, or a type defined as one. An int, a uint or a uintptr counts as
// the integer of its size.
type Element interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Kind is the type of an element.
type Kind uint8

// The kinds.
const (
	Int8 Kind = iota
	Int16
	Int32
	Int64
	Uint8
	Uint16
	Uint32
	Uint64
	Float32
	Float64
	Complex64
	Complex128
	// Kinds is the number of kinds.
	Kinds
)

// KindOf returns the kind of T, also where T is a defined type. It uses reflection: call it at set-up, not for every
// operation.
func KindOf[T Element]() Kind {
	t := reflect.TypeFor[T]()
	switch kind := t.Kind(); kind {
	case reflect.Int:
		return Int32 + Kind(t.Size()/8)
	case reflect.Uint, reflect.Uintptr:
		return Uint32 + Kind(t.Size()/8)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Int8 + Kind(kind-reflect.Int8)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Uint8 + Kind(kind-reflect.Uint8)
	default:
		return Float32 + Kind(kind-reflect.Float32)
	}
}

var kindNames = [Kinds]string{"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64", "complex128"}

var kindSizes = [Kinds]int{1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return k < Kinds }

func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Size returns the size of an element in bytes.
func (k Kind) Size() int { return kindSizes[k] }

// Op is an operation. It gives the new value of an element d that is combined with s.
type Op uint8

// The operations.
const (
	// Sum is d + s.
	Sum Op = iota
	// Product is d * s.
	Product
	// Min and Max are the smaller and the larger of d and s; not of complex elements.
	Min
	Max
	// And, Or and Xor combine bit by bit; only of integers.
	And
	Or
	Xor
	// Replace is s.
	Replace
	// NoOp is d.
	NoOp
	ops
)

var opNames = [ops]string{"Sum", "Product", "Min", "Max", "And", "Or", "Xor", "Replace", "NoOp"}

func (o Op) String() string {
	if o < ops {
		return opNames[o]
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// ErrUnsupported reports that the element type does not have the operation.
var ErrUnsupported = errors.New("operation not for this element type")

// Supported returns an ErrUnsupported if elements of kind do not have op, and nil if they do.
func Supported(kind Kind, op Op) error {
	switch {
	case kind >= Kinds:
		return fmt.Errorf("reduce: %w: unknown %v", ErrUnsupported, kind)
	case op >= ops:
		return fmt.Errorf("reduce: %w: unknown %v; allowed are %s", ErrUnsupported, op, errtext.List(Operations(kind)))
	case !has(kind, op):
		return fmt.Errorf("reduce: %w: %v of %v; allowed are %s", ErrUnsupported, op, kind, errtext.List(Operations(kind)))
	}
	return nil
}

// has reports whether elements of a valid kind have one of the operations.
func has(kind Kind, op Op) bool {
	switch {
	case op < Min || op > Xor:
		return true
	case op < And:
		return kind < Complex64
	default:
		return kind < Float32
	}
}

// Operations returns the operations that elements of a valid kind have, in their order.
func Operations(kind Kind) (all []Op) {
	for op := range ops {
		if has(kind, op) {
			all = append(all, op)
		}
	}
	return all
}
