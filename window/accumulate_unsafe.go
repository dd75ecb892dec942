package window

import (
	"unsafe"

	"github.com/onesided/rma/aggregate/reduce"
)

// kernels are the functions that apply operations to elements of one kind, nil
// where the kind does not have the operation.
type kernels struct {
	apply  [reduce.NoOp + 1]reduce.Func
	fetch  [reduce.NoOp + 1]reduce.FetchFunc
	atomic [reduce.NoOp + 1]reduce.AtomicFunc
	swap   reduce.AtomicSwapFunc
}

func kernelsFor(kind reduce.Kind) *kernels {
	k := new(kernels)
	for op := Op(0); int(op) < len(k.apply); op++ {
		if reduce.Supported(kind, op) != nil {
			continue
		}
		k.apply[op], _ = reduce.Lookup(kind, op)
		k.fetch[op], _ = reduce.LookupFetch(kind, op)
		k.atomic[op], _ = reduce.LookupAtomic(kind, op)
	}
	k.swap, _ = reduce.LookupAtomicSwap(kind)
	return k
}

// unescaped hides p from escape analysis, so that the program's operands stay on
// its stack. Sound for the kernels: they keep no pointer after they return.
func unescaped(p unsafe.Pointer) unsafe.Pointer {
	x := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}

func address[T Element](s []T) unsafe.Pointer {
	return unescaped(unsafe.Pointer(unsafe.SliceData(s)))
}

// one is the element as a slice.
func one[T Element](element *T) []T { return unsafe.Slice(element, 1) }

// apply combines origin into to, which nobody else sees.
func (w *Window[T]) apply(op Op, to, origin []T) {
	w.kernels.apply[op](address(to), address(origin), len(to))
}

// applyOne combines from into to.
func applyOne[T Element](apply reduce.Func, to, from *T) {
	apply(unescaped(unsafe.Pointer(to)), unescaped(unsafe.Pointer(from)), 1)
}

// combine applies an accumulate to mapped window memory, to being its elements
// from displacement on of target's window, whose peer entry exists because its
// memory is mapped. result is nil if nobody wants the old values.
func (w *Window[T]) combine(op Op, to, origin, result []T, target, displacement int) {
	if w.native && w.kernels.atomic[op] != nil {
		for i := range to {
			var old unsafe.Pointer
			if result != nil {
				old = address(result[i:])
			}
			w.kernels.atomic[op](address(to[i:]), address(rest(origin, min(i, len(origin)), len(origin)-min(i, len(origin)))), old)
		}
		return
	}
	p := w.peers[target].Load()
	offset := w.offset(displacement)
	for len(to) > 0 {
		n := min(len(to), w.untilStripeEnd(p, offset))
		stripe := p.control.stripe(offset)
		w.lockStripe(stripe)
		if result == nil {
			w.kernels.apply[op](address(to), address(origin), n)
		} else {
			w.kernels.fetch[op](address(to), address(origin), address(result), n)
			result = result[n:]
		}
		stripe.Store(0)
		to = to[n:]
		if len(origin) != 0 {
			origin = origin[n:]
		}
		offset += uint64(n) * uint64(sizeOf[T]())
	}
}

// fetchOne is combine of one element whose old value is wanted.
func (w *Window[T]) fetchOne(op Op, to []T, operand T, result *T, target, displacement int) {
	source := unescaped(unsafe.Pointer(&operand))
	if w.native && w.kernels.atomic[op] != nil {
		w.kernels.atomic[op](address(to), source, unescaped(unsafe.Pointer(result)))
		return
	}
	stripe := w.peers[target].Load().control.stripe(w.offset(displacement))
	w.lockStripe(stripe)
	w.kernels.fetch[op](address(to), source, unescaped(unsafe.Pointer(result)), 1)
	stripe.Store(0)
}

// swapOne is CompareAndSwap on mapped memory.
func (w *Window[T]) swapOne(to []T, compare, swap T, result *T, target, displacement int) {
	if w.native && w.kernels.swap != nil {
		w.kernels.swap(address(to), unescaped(unsafe.Pointer(&compare)), unescaped(unsafe.Pointer(&swap)), unescaped(unsafe.Pointer(result)))
		return
	}
	stripe := w.peers[target].Load().control.stripe(w.offset(displacement))
	w.lockStripe(stripe)
	old := to[0]
	if sameBits(old, compare) {
		to[0] = swap
	}
	stripe.Store(0)
	*result = old
}

// sameBits compares two elements as the bytes they are: a NaN equals itself, and 0
// differs from -0. Sound because both have sizeOf[T] bytes.
func sameBits[T Element](a, b T) bool {
	pa, pb := unsafe.Pointer(&a), unsafe.Pointer(&b)
	switch unsafe.Sizeof(a) {
	case 1:
		return *(*uint8)(pa) == *(*uint8)(pb)
	case 2:
		return *(*uint16)(pa) == *(*uint16)(pb)
	case 4:
		return *(*uint32)(pa) == *(*uint32)(pb)
	case 8:
		return *(*uint64)(pa) == *(*uint64)(pb)
	default:
		return *(*[2]uint64)(pa) == *(*[2]uint64)(pb)
	}
}
