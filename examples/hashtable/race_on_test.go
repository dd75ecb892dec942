//go:build race

package hashtable

// fewer is how many times fewer operations tests do under the race detector, with which each
// takes several times as long.
const fewer = 8
