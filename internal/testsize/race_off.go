//go:build !race

package testsize

// Race tells that the race detector is in this build.
const Race = false
