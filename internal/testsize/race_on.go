//go:build race

package testsize

// Race reports whether the race detector is in this build.
const Race = true
