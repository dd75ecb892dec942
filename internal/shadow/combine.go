package shadow

import (
	"math"
	"reflect"

	"github.com/onesided/rma/aggregate/reduce"
)

// combine returns the result of combining the element was with the element with.
func combine[T reduce.Element](op reduce.Op, was, with T) T {
	switch op {
	case reduce.Sum:
		return was + with
	case reduce.Product:
		return was * with
	case reduce.Replace:
		return with
	case reduce.NoOp:
		return was
	}
	result := reflect.New(reflect.TypeFor[T]()).Elem()
	a, b := reflect.ValueOf(was), reflect.ValueOf(with)
	switch {
	case a.CanInt():
		result.SetInt(ordered(op, a.Int(), b.Int()))
	case a.CanUint():
		result.SetUint(ordered(op, a.Uint(), b.Uint()))
	case op == reduce.Min:
		result.SetFloat(math.Min(a.Float(), b.Float()))
	default:
		result.SetFloat(math.Max(a.Float(), b.Float()))
	}
	return result.Interface().(T)
}

// ordered is combine for the operations that only integers have, and for the minimum and maximum of integers.
func ordered[T int64 | uint64](op reduce.Op, was, with T) T {
	switch op {
	case reduce.Min:
		return min(was, with)
	case reduce.Max:
		return max(was, with)
	case reduce.And:
		return was & with
	case reduce.Or:
		return was | with
	}
	return was ^ with
}
