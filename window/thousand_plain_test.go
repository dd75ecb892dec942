//go:build !race

package window_test

const many = 1000

// raced tells whether the race detector runs.
const raced = false
