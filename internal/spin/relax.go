//go:build amd64 || arm64

package spin

// Relax hints to the processor that this is a polling loop. It leaves the core for tens of cycles to its other
// hyperthread, which may run another rank.
func Relax()
