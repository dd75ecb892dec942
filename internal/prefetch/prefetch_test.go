package prefetch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/prefetch"
)

// Prefetching changes nothing and allocates nothing.
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
