//go:build !race

package jobtest

// raced tells that the race detector is in this build.
const raced = false
