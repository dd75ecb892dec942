package bounds

// An Extent is the address range of memory. It does not keep the memory alive.
type Extent struct{ First, Length uint64 }

// Of returns the range of memory.
func Of(memory []byte) Extent { return Extent{Address(memory), uint64(len(memory))} }

// Holds reports whether the range contains all of part.
func (e Extent) Holds(part []byte) bool {
	return Contains(e.First, e.Length, Address(part), uint64(len(part)))
}
