package cpucopy

import "fmt"

// A Method is a way to copy.
type Method uint32

const (
	// Auto chooses by size and processor.
	Auto Method = iota
	// Plain is the runtime's copy.
	Plain
	// Vector is the vector loop, from Least bytes on.
	Vector
	// String is the string instruction, from Least bytes on.
	String
)

func (m Method) String() string {
	if int(m) < len(methods) {
		return methods[m]
	}
	return fmt.Sprintf("Method(%d)", uint32(m))
}

var methods = [...]string{"auto", "plain", "vector", "string"}

// Parse returns the method with a name.
func Parse(name string) (Method, error) {
	for m, n := range methods {
		if n == name {
			return Method(m), nil
		}
	}
	return 0, fmt.Errorf("cpucopy: no method %q: allowed are %v", name, methods)
}

// Least is the number of bytes from which on the runtime's copy is not used.
const Least = 512

const (
	// piece is how many bytes are copied at a time. From 1 MiB on the runtime's copy bypasses the caches. Within a
	// piece the garbage collector cannot stop the goroutine.
	piece = 512 << 10
	// cached is the number of bytes of which source and destination together fit the first-level cache.
	cached = 24 << 10
	line   = 64
	page   = 4096
)

// Copy copies min(len(to), len(from)) bytes as copy does, and returns their number.
func Copy(to, from []byte) int {
	n := min(len(to), len(from))
	to, from = to[:n], from[:n]
	if n < Least || overlap(to, from) {
		return copy(to, from)
	}
	for len(from) > piece {
		copyPiece(to[:piece], from[:piece])
		to, from = to[piece:], from[piece:]
	}
	copyPiece(to, from)
	return n
}
