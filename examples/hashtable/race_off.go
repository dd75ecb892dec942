//go:build !race

package hashtable

// raced reports whether the race detector is in the program.
const raced = false
