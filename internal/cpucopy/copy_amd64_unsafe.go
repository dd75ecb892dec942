//go:build amd64 && !race

package cpucopy

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	// Processors with these later instructions keep their clock rate with 64-byte vectors; the first processors with
	// such vectors did not.
	hasVector = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VBMI2
	hasString = cpu.X86.HasERMS
	method    atomic.Uint32
)

// Use sets the method of all later copies and returns the previous one. It returns an error if the processor does not
// have the method.
func Use(m Method) (previous Method, err error) {
	if m > String || m == Vector && !hasVector || m == String && !hasString {
		return Method(method.Load()), fmt.Errorf("cpucopy: this processor has no method %v", m)
	}
	return Method(method.Swap(uint32(m))), nil
}

// copyVector copies n bytes, at least 256, that do not overlap.
//
//go:noescape
func copyVector(to, from unsafe.Pointer, n uintptr)

// copyString copies n bytes that do not overlap.
//
//go:noescape
func copyString(to, from unsafe.Pointer, n uintptr)

// overlap reports whether two pieces of one length share bytes. Only the runtime's copy handles that.
func overlap(to, from []byte) bool {
	n := uintptr(len(from))
	ahead := uintptr(unsafe.Pointer(unsafe.SliceData(to))) - uintptr(unsafe.Pointer(unsafe.SliceData(from)))
	return ahead < n || -ahead < n
}

// copyPiece copies pieces of one length that do not overlap. It is sound because both routines stay within that length.
func copyPiece(to, from []byte) {
	n := uintptr(len(from))
	if n < Least {
		copy(to, from)
		return
	}
	t, f := unsafe.Pointer(unsafe.SliceData(to)), unsafe.Pointer(unsafe.SliceData(from))
	ahead := uintptr(t) - uintptr(f)
	switch m := Method(method.Load()); {
	case m == Plain:
		copy(to, from)
	case m == String, m == Auto && hasVector && hasString && n > cached && (ahead%page == 0 || ahead%page >= line):
		copyString(t, f, n)
	case hasVector && m != String:
		copyVector(t, f, n)
	default:
		copy(to, from)
	}
}
