package bounds

// Contains tells whether n bytes at address lie within length bytes at base, without
// overflow, whatever the four numbers are.
func Contains(base, length, address, n uint64) bool {
	return address >= base && n <= length && address-base <= length-n
}
