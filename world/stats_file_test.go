package world_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// A table that cannot be written is an error before anything runs.
func TestStatsNowhere(t *testing.T) {
	t.Setenv("RMA_STATS", filepath.Join(t.TempDir(), "none", "stats"))
	for _, options := range [][]world.Option{nil, jobtest.OptionsApart(), {world.WithDevice("tcp")}} {
		ran := false
		err := world.Run(t.Context(), 2, func(context.Context, *world.World) error {
			ran = true
			return nil
		}, options...)
		require.ErrorIs(t, err, world.ErrEnvironment)
		require.ErrorContains(t, err, "RMA_STATS: open ")
		require.False(t, ran)
	}
}
