package main

import (
	"math"

	"github.com/onesided/rma/examples/hashtable"
)

const (
	// usualWord is how long different words are on average, generously.
	usualWord = 16
	// The least that a rank has, however little there is to count: keys are not
	// spread evenly, and a few words may be long.
	leastSlots  = 1 << 10
	leastRecord = 128 << 10
)

// estimate guesses how many different words text of so many bytes has. By Heaps' law
// that is a power of the length; constant and exponent are such that they leave room for
// source code with its test data, which has more than prose.
func estimate(bytes int64) int {
	return int(min(float64(bytes)/2+1, 1<<15+2*math.Pow(float64(bytes), 0.75)))
}

// sizes gives the table of n ranks room for so many different words, and as many slots
// again that stay free.
func sizes(distinct, n int) hashtable.Config {
	share := distinct/n + 1
	share += share / 8
	return hashtable.Config{
		Slots:       min(max(leastSlots, 2*share), hashtable.MaxSlots),
		RecordBytes: min(max(leastRecord, share*hashtable.CounterBytes(usualWord)), hashtable.MaxRecordBytes),
	}
}
