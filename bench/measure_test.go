package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

func TestTheTargetsProcessorTimeIsRankOnes(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		took, err := (&stage{w: w}).ofTarget(ctx, time.Duration(w.Rank()*10))
		assert.Equal(t, time.Duration(10), took)
		return err
	}))
}
