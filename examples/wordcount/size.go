package main

import (
	"math"

	"github.com/onesided/rma/examples/hashtable"
)

const (
	// usualWord is a generous estimate of the average length of a word, in bytes.
	usualWord = 16
	// The smallest table of a rank, however little there is to count. Keys do not spread evenly, and a few words may
	// be long.
	leastSlots  = 1 << 10
	leastRecord = 128 << 10
)

// estimate estimates the number of different words in a text of this length. By Heaps' law it is a power of the
// length. Constant and exponent leave room for source code with its test data, which has more different words than
// prose.
func estimate(bytes int64) int {
	return int(min(float64(bytes)/2+1, 1<<15+2*math.Pow(float64(bytes), 0.75)))
}

// sizes returns a table of n ranks with room for distinct different words. As many slots again stay free.
func sizes(distinct, n int) hashtable.Config {
	share := distinct/n + 1
	share += share / 8
	return hashtable.Config{
		Slots:       min(max(leastSlots, 2*share), hashtable.MaxSlots),
		RecordBytes: min(max(leastRecord, share*hashtable.CounterBytes(usualWord)), hashtable.MaxRecordBytes),
	}
}
