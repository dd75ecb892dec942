package verbstest

import "unsafe"

// addressOf numbers memory. The address is compared, never followed.
func addressOf(memory []byte) uint64 {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))))
}

// within tells whether all of b is in a.
func within(a, b []byte) bool {
	return addressOf(b) >= addressOf(a) && addressOf(b)+uint64(len(b)) <= addressOf(a)+uint64(len(a))
}

// overlap tells whether any of b is in a.
func overlap(a, b []byte) bool {
	return addressOf(b) < addressOf(a)+uint64(len(a)) && addressOf(a) < addressOf(b)+uint64(len(b))
}
