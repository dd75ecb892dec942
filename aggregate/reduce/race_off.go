//go:build !race

package reduce

// raced reports whether the program is built with the race detector.
const raced = false
