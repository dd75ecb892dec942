//go:build amd64 || arm64

package spin

// Relax tells the processor that this is a loop which waits: for some tens of cycles it
// leaves the core to whatever else runs there, which is another rank's work where two
// processors are one core.
func Relax()
