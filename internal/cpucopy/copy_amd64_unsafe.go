//go:build amd64 && !race

package cpucopy

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/cpu"
)

var (
	// Processors with these later instructions keep their clock with 64-byte
	// vectors; the first that had such vectors did not.
	hasVector = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VBMI2
	hasString = cpu.X86.HasERMS
	method    atomic.Uint32
)

// Use makes all copies from now on by a method, and returns the one before. A
// method that this processor does not have is an error.
func Use(m Method) (previous Method, err error) {
	if m > String || m == Vector && !hasVector || m == String && !hasString {
		return Method(method.Load()), fmt.Errorf("cpucopy: this processor has no method %v", m)
	}
	return Method(method.Swap(uint32(m))), nil
}

// copyVector copies n bytes, at least 256, which do not overlap.
//
//go:noescape
func copyVector(to, from unsafe.Pointer, n uintptr)

// copyString copies n bytes which do not overlap.
//
//go:noescape
func copyString(to, from unsafe.Pointer, n uintptr)

// overlap tells whether two pieces of one length share bytes, which only the
// runtime's copy minds.
func overlap(to, from []byte) bool {
	n := uintptr(len(from))
	ahead := uintptr(unsafe.Pointer(unsafe.SliceData(to))) - uintptr(unsafe.Pointer(unsafe.SliceData(from)))
	return ahead < n || -ahead < n
}

// copyPiece copies pieces of one length that do not overlap. Sound because both
// routines stay within that length at both ends.
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
	case hasString && (m == String || m == Auto && n > cached && (ahead%page == 0 || ahead%page >= line)):
		copyString(t, f, n)
	case hasVector && m != String:
		copyVector(t, f, n)
	default:
		copy(to, from)
	}
}
