//go:build !race

package hashtable

// raced tells whether the race detector is in the program.
const raced = false
