//go:build race

package world_test

// manyRanks is fewer under the race detector, which takes several times the memory.
const manyRanks = 100

// raced: every access takes several times the time too, so random programs have a part of the
// calls.
const (
	raced      = true
	partOfThem = 4
)
