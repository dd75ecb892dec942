//go:build race

package window_test

// many is fewer ranks under the race detector, which takes some 20 times as long.
const many = 100

// raced tells whether the race detector runs.
const raced = true
