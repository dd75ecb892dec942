//go:build !race

package world_test

// manyRanks is a number of ranks far above that of cores.
const manyRanks = 1000

const (
	raced      = false
	partOfThem = 1
)
