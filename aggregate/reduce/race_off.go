//go:build !race

package reduce

// raced tells whether the race detector is in the program.
const raced = false
