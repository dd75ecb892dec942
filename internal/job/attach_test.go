package job_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// TestAttached looks that a World keeps one value for a key, and tells of its end
// those that still want to hear, once, while its memory is there.
func TestAttached(t *testing.T) {
	type key struct{}
	told := 0
	var left *world.World
	require.NoError(t, world.Run(t.Context(), 1, func(_ context.Context, w *world.World) error {
		left = w
		first := job.Of(w).Attached(key{}, func() any { return new(int) })
		require.Same(t, first, job.Of(w).Attached(key{}, func() any { return new(int) }))
		memory, err := job.Of(w).Device().AllocateMemory(8)
		require.NoError(t, err)
		job.Of(w).OnClose(func() error { memory[0]++; told++; return nil })
		job.Of(w).OnClose(func() error { told += 100; return nil })()
		require.Zero(t, told)
		return nil
	}))
	require.Equal(t, 1, told)
	job.Of(left).OnClose(func() error { told++; return nil })
	require.Equal(t, 2, told, "a World that is closed tells at once")
	require.NoError(t, left.Close())
	require.Equal(t, 2, told)
}
