package bounds

// Contains reports whether n bytes at address lie within length bytes at base. It does not overflow, whatever the four
// numbers are.
func Contains(base, length, address, n uint64) bool {
	return address >= base && n <= length && address-base <= length-n
}

// Holds reports whether memory contains all of part.
func Holds(memory, part []byte) bool {
	return Contains(Address(memory), uint64(len(memory)), Address(part), uint64(len(part)))
}
