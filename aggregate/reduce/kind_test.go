package reduce_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onesided/rma/aggregate/reduce"
)

const (
	forComplex = "Sum Product Replace NoOp"
	forFloat   = "Sum Product Min Max Replace NoOp"
	forInteger = "Sum Product Min Max And Or Xor Replace NoOp"
)

var supported = []struct {
	kind       reduce.Kind
	name       string
	size       int
	operations string
}{
	{reduce.Int8, "int8", 1, forInteger},
	{reduce.Int16, "int16", 2, forInteger},
	{reduce.Int32, "int32", 4, forInteger},
	{reduce.Int64, "int64", 8, forInteger},
	{reduce.Uint8, "uint8", 1, forInteger},
	{reduce.Uint16, "uint16", 2, forInteger},
	{reduce.Uint32, "uint32", 4, forInteger},
	{reduce.Uint64, "uint64", 8, forInteger},
	{reduce.Float32, "float32", 4, forFloat},
	{reduce.Float64, "float64", 8, forFloat},
	{reduce.Complex64, "complex64", 8, forComplex},
	{reduce.Complex128, "complex128", 16, forComplex},
}

func TestSupported(t *testing.T) {
	for _, level := range reduce.Levels() {
		use(t, level)
		for _, kind := range supported {
			if kind.kind.String() != kind.name || kind.kind.Size() != kind.size {
				t.Errorf("%v has %d bytes, should be %v of %d", kind.kind, kind.kind.Size(), kind.name, kind.size)
			}
			for op := reduce.Sum; op <= reduce.NoOp; op++ {
				lookUpAll(t, kind.kind, op, strings.Contains(" "+kind.operations+" ", " "+op.String()+" "))
			}
		}
	}
}

// lookUpAll looks up every form of an operation that elements have or have not.
func lookUpAll(t *testing.T, kind reduce.Kind, op reduce.Op, has bool) {
	t.Helper()
	if slices.Contains(reduce.Operations(kind), op) != has {
		t.Errorf("%v has the operations %v", kind, reduce.Operations(kind))
	}
	apply, applyErr := reduce.Lookup(kind, op)
	fetch, fetchErr := reduce.LookupFetch(kind, op)
	atomic, atomicErr := reduce.LookupAtomic(kind, op)
	forms := map[string]struct {
		err   error
		given bool
		wide  bool
	}{
		"Supported":    {reduce.Supported(kind, op), has, true},
		"Lookup":       {applyErr, apply != nil, true},
		"LookupFetch":  {fetchErr, fetch != nil, true},
		"LookupAtomic": {atomicErr, atomic != nil, kind.Size() <= 8},
	}
	for name, form := range forms {
		if has && (form.err != nil || form.given != form.wide) {
			t.Errorf("%s: %v of %v: given %v, %v", name, op, kind, form.given, form.err)
		}
		if !has && (!errors.Is(form.err, reduce.ErrUnsupported) || form.given || !says(form.err, op.String(), kind.String())) {
			t.Errorf("%s: %v of %v is refused with %v", name, op, kind, form.err)
		}
	}
}

func says(err error, words ...string) bool {
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return false
		}
	}
	return strings.HasPrefix(err.Error(), "reduce: ")
}

func TestSwapOfEveryKind(t *testing.T) {
	for _, kind := range supported {
		swap, err := reduce.LookupAtomicSwap(kind.kind)
		if err != nil || (swap != nil) != (kind.size <= 8) {
			t.Errorf("swap of %v: given %v, %v", kind.kind, swap != nil, err)
		}
	}
	if _, err := reduce.LookupAtomicSwap(reduce.Complex128 + 1); !errors.Is(err, reduce.ErrUnsupported) {
		t.Errorf("swap of no kind: %v", err)
	}
}

func TestNoKindAndNoOperation(t *testing.T) {
	for _, c := range []struct {
		kind reduce.Kind
		op   reduce.Op
		says string
	}{
		{reduce.Complex128 + 1, reduce.Sum, "kind 12"},
		{255, reduce.Sum, "kind 255"},
		{reduce.Int8, reduce.NoOp + 1, "operation 9"},
		{reduce.Int8, 255, "unknown operation 255; allowed are Sum, Product, Min, Max, And, Or, Xor, Replace and NoOp"},
		{reduce.Float32, reduce.And, "And of float32; allowed are Sum, Product, Min, Max, Replace and NoOp"},
		{reduce.Float32, 255, "allowed are Sum, Product, Min, Max, Replace and NoOp"},
		{reduce.Complex64, 255, "allowed are Sum, Product, Replace and NoOp"},
	} {
		if _, err := reduce.Lookup(c.kind, c.op); !errors.Is(err, reduce.ErrUnsupported) || !says(err, c.says) {
			t.Errorf("%v of %v: %v", c.op, c.kind, err)
		}
	}
}

func TestKindOf(t *testing.T) {
	type defined float32
	for _, c := range []struct{ got, want reduce.Kind }{
		{reduce.KindOf[int8](), reduce.Int8},
		{reduce.KindOf[int16](), reduce.Int16},
		{reduce.KindOf[int32](), reduce.Int32},
		{reduce.KindOf[int64](), reduce.Int64},
		{reduce.KindOf[uint8](), reduce.Uint8},
		{reduce.KindOf[uint16](), reduce.Uint16},
		{reduce.KindOf[uint32](), reduce.Uint32},
		{reduce.KindOf[uint64](), reduce.Uint64},
		{reduce.KindOf[float32](), reduce.Float32},
		{reduce.KindOf[float64](), reduce.Float64},
		{reduce.KindOf[complex64](), reduce.Complex64},
		{reduce.KindOf[complex128](), reduce.Complex128},
		{reduce.KindOf[defined](), reduce.Float32},
	} {
		if c.got != c.want {
			t.Errorf("%v is taken for %v", c.want, c.got)
		}
	}
}
