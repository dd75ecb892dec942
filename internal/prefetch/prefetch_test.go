package prefetch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/prefetch"
)

// What is fetched stays as it is, and nothing is allocated.
func TestElement(t *testing.T) {
	memory := []uint64{1, 2, 3}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for i := range memory {
			prefetch.Element(&memory[i])
			prefetch.ElementToWrite(&memory[i])
		}
	}))
	require.Equal(t, []uint64{1, 2, 3}, memory)
}
