//go:build !race

package worldtest

// raced tells that the race detector is in this build.
const raced = false
