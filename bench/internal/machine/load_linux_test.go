package machine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestBusyTimeIsAllButIdle(t *testing.T) {
	busy, known := busyIn("cpu  100 20 30 5000 700 4 5 6 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
	assert.True(t, known)
	assert.Equal(t, 1650*time.Millisecond, busy)
	for _, text := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a 2 3 4 5 6 7 8"} {
		_, known := busyIn(text)
		assert.False(t, known, text)
	}
	before, known := busyTime()
	after, _ := busyTime()
	assert.True(t, known)
	assert.GreaterOrEqual(t, after, before)
	assert.NotEmpty(t, LoadAverage())
}
