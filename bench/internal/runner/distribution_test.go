package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A reading of the clock is a small part of what is timed, as far as batches can make it so.
func TestBatches(t *testing.T) {
	for _, test := range []struct {
		iteration, clock time.Duration
		want             int
	}{
		{time.Microsecond, 40, 1}, {800, 40, 1}, {799, 40, 2}, {100, 20, 4}, {10, 40, longestBatch}, {0, 40, longestBatch}, {10, 0, 1},
	} {
		assert.Equal(t, test.want, batchOf(test.iteration, test.clock), "%v, %v", test.iteration, test.clock)
	}
}
