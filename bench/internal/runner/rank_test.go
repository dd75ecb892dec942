package runner

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/world"
)

func TestAShortRunHasFewIterations(t *testing.T) {
	one := cases.Cell{Case: cases.ByName("put_flush_lat"), Size: 8}
	assert.Equal(t, 20000, (&Rank{}).iterations(one))
	assert.Equal(t, 20, (&Rank{Rank: cases.Rank{Shorten: 1000}}).iterations(one))
	assert.Equal(t, 1, (&Rank{Rank: cases.Rank{Shorten: 1000, Virtual: true}}).iterations(cases.Cell{Case: one.Case, Size: 1 << 20}))
}

func TestTheTargetsProcessorTimeIsRankOnes(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		took, err := (&Rank{Rank: cases.Rank{World: w}}).ofTarget(ctx, time.Duration(w.Rank()*10))
		assert.Equal(t, time.Duration(10), took)
		return err
	}))
}
