package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
)

func TestAShortRunHasFewTurns(t *testing.T) {
	one := cell{caseNamed("put_flush_lat"), 8}
	assert.Equal(t, 20000, (&stage{}).turns(one))
	assert.Equal(t, 20, (&stage{caseRank: caseRank{shorten: 1000}}).turns(one))
	assert.Equal(t, 1, (&stage{caseRank: caseRank{shorten: 1000, virtual: true}}).turns(cell{one.c, 1 << 20}))
}

func TestTheTargetsProcessorTimeIsRankOnes(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		took, err := (&stage{caseRank: caseRank{w: w}}).ofTarget(ctx, time.Duration(w.Rank()*10))
		assert.Equal(t, time.Duration(10), took)
		return err
	}))
}
