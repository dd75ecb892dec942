//go:build !race

package oracle_test

// raced tells whether the race detector runs.
const raced = false
