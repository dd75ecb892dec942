package reduce

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// An AtomicFunc combines the element at src into the one at dst by atomic instructions. Unless old is nil, it stores
// the previous value of dst at old. It is atomic with respect to every AtomicFunc and AtomicSwapFunc on dst, in any
// process.
type AtomicFunc func(dst, src, old unsafe.Pointer)

// An AtomicSwapFunc sets the element at dst to the one at swap if dst equals compare bit for bit. It stores the
// previous value of dst at old.
type AtomicSwapFunc func(dst, compare, swap, old unsafe.Pointer)

// LookupAtomic returns the atomic form of op on one element of kind. It returns nil for elements of 16 bytes, which
// have no atomic form.
func LookupAtomic(kind Kind, op Op) (AtomicFunc, error) {
	if err := Supported(kind, op); err != nil {
		return nil, err
	}
	if native := nativeOf(kind, op); native != nil {
		return native, nil
	}
	apply := plain[kind][op]
	switch kind.Size() {
	case 1:
		return narrow[uint8](apply), nil
	case 2:
		return narrow[uint16](apply), nil
	case 4:
		return loop32(apply), nil
	case 8:
		return loop64(apply), nil
	}
	return nil, nil
}

// LookupAtomicSwap returns the atomic compare-and-swap of one element of kind, or nil for elements of 16 bytes.
func LookupAtomicSwap(kind Kind) (AtomicSwapFunc, error) {
	if err := Supported(kind, Replace); err != nil {
		return nil, err
	}
	switch kind.Size() {
	case 1:
		return narrowSwap[uint8], nil
	case 2:
		return narrowSwap[uint16], nil
	case 4:
		return swap32, nil
	case 8:
		return swap64, nil
	}
	return nil, nil
}

// nativeOf returns the operations that the processor has as one instruction. It also returns those that are so short
// that the call of a Func in their loop would take longer than the rest.
func nativeOf(kind Kind, op Op) AtomicFunc {
	integer := kind <= Uint64
	switch size := kind.Size(); {
	case size == 8 && op == Replace:
		return func(dst, src, old unsafe.Pointer) {
			keep(old, atomic.SwapUint64((*uint64)(dst), *(*uint64)(src)))
		}
	case size == 4 && op == Replace:
		return func(dst, src, old unsafe.Pointer) {
			keep(old, atomic.SwapUint32((*uint32)(dst), *(*uint32)(src)))
		}
	case size == 8 && op == Sum && integer:
		return func(dst, src, old unsafe.Pointer) {
			n := *(*uint64)(src)
			keep(old, atomic.AddUint64((*uint64)(dst), n)-n)
		}
	case size == 4 && op == Sum && integer:
		return func(dst, src, old unsafe.Pointer) {
			n := *(*uint32)(src)
			keep(old, atomic.AddUint32((*uint32)(dst), n)-n)
		}
	case size == 8 && op == And:
		return func(dst, src, old unsafe.Pointer) {
			if old == nil {
				atomic.AndUint64((*uint64)(dst), *(*uint64)(src))
				return
			}
			keep(old, atomic.AndUint64((*uint64)(dst), *(*uint64)(src)))
		}
	case size == 8 && op == Or:
		return func(dst, src, old unsafe.Pointer) {
			if old == nil {
				atomic.OrUint64((*uint64)(dst), *(*uint64)(src))
				return
			}
			keep(old, atomic.OrUint64((*uint64)(dst), *(*uint64)(src)))
		}
	case size == 8 && op == Xor:
		return func(dst, src, old unsafe.Pointer) {
			n := *(*uint64)(src)
			for {
				was := atomic.LoadUint64((*uint64)(dst))
				if atomic.CompareAndSwapUint64((*uint64)(dst), was, was^n) {
					keep(old, was)
					return
				}
			}
		}
	case kind == Float64 && op == Sum:
		return func(dst, src, old unsafe.Pointer) {
			n := *(*float64)(src)
			for {
				was := atomic.LoadUint64((*uint64)(dst))
				if atomic.CompareAndSwapUint64((*uint64)(dst), was, math.Float64bits(math.Float64frombits(was)+n)) {
					keep(old, was)
					return
				}
			}
		}
	}
	return nil
}

func keep[T bits](old unsafe.Pointer, value T) {
	if old != nil {
		*(*T)(old) = value
	}
}

func loop64(apply Func) AtomicFunc {
	return func(dst, src, old unsafe.Pointer) {
		for {
			was := atomic.LoadUint64((*uint64)(dst))
			now := was
			apply(hidden(unsafe.Pointer(&now)), src, 1)
			if now == was || atomic.CompareAndSwapUint64((*uint64)(dst), was, now) {
				keep(old, was)
				return
			}
		}
	}
}

func loop32(apply Func) AtomicFunc {
	return func(dst, src, old unsafe.Pointer) {
		for {
			was := atomic.LoadUint32((*uint32)(dst))
			now := was
			apply(hidden(unsafe.Pointer(&now)), src, 1)
			if now == was || atomic.CompareAndSwapUint32((*uint32)(dst), was, now) {
				keep(old, was)
				return
			}
		}
	}
}

// hidden keeps p from escaping through a function value. It is sound because no Func keeps its pointers, and because no
// call happens while only x holds the address. The race detector would insert calls.
//
//go:norace
//go:nocheckptr
func hidden(p unsafe.Pointer) unsafe.Pointer {
	x := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}

// word returns the aligned 32-bit word that contains the 1- or 2-byte element at dst, and the element's shift in it. It
// assumes a little-endian machine, as all supported machines are. The word lies in the element's window, or in the
// page-aligned memory around it, because a page holds whole words.
func word(dst unsafe.Pointer) (w *uint32, shift uint) {
	within := uintptr(dst) & 3
	return (*uint32)(unsafe.Add(dst, -int(within))), uint(within) * 8
}

func narrow[T uint8 | uint16](apply Func) AtomicFunc {
	return func(dst, src, old unsafe.Pointer) {
		w, shift := word(dst)
		mask := uint32(^T(0)) << shift
		for {
			all := atomic.LoadUint32(w)
			was := T(all >> shift)
			now := was
			apply(hidden(unsafe.Pointer(&now)), src, 1)
			if now == was || atomic.CompareAndSwapUint32(w, all, all&^mask|uint32(now)<<shift) {
				keep(old, was)
				return
			}
		}
	}
}

func narrowSwap[T uint8 | uint16](dst, compare, swap, old unsafe.Pointer) {
	w, shift := word(dst)
	mask := uint32(^T(0)) << shift
	for {
		all := atomic.LoadUint32(w)
		was := T(all >> shift)
		if was != *(*T)(compare) || atomic.CompareAndSwapUint32(w, all, all&^mask|uint32(*(*T)(swap))<<shift) {
			keep(old, was)
			return
		}
	}
}

func swap64(dst, compare, swap, old unsafe.Pointer) {
	want := *(*uint64)(compare)
	for {
		was := atomic.LoadUint64((*uint64)(dst))
		if was != want || atomic.CompareAndSwapUint64((*uint64)(dst), was, *(*uint64)(swap)) {
			keep(old, was)
			return
		}
	}
}

func swap32(dst, compare, swap, old unsafe.Pointer) {
	want := *(*uint32)(compare)
	for {
		was := atomic.LoadUint32((*uint32)(dst))
		if was != want || atomic.CompareAndSwapUint32((*uint32)(dst), was, *(*uint32)(swap)) {
			keep(old, was)
			return
		}
	}
}
