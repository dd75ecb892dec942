//go:build race

package world_test

// manyRanks is fewer under the race detector, which takes several times the memory.
const manyRanks = 100
