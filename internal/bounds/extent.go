package bounds

// An Extent is where memory is. It does not keep it alive.
type Extent struct{ First, Length uint64 }

// Of is the extent of memory.
func Of(memory []byte) Extent { return Extent{Address(memory), uint64(len(memory))} }

// Holds tells whether the extent has all of part.
func (e Extent) Holds(part []byte) bool {
	return Contains(e.First, e.Length, Address(part), uint64(len(part)))
}
