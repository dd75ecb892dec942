package toggles

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// A job has the switches that its flags set.
func TestSwitchesReachTheJob(t *testing.T) {
	var s Settings
	for _, text := range []string{"transfer=register", "rings=on", "hugepages=off", "pipes=off", "cells=off", "staging=off", "algorithm=long", "pack=off", "merge=off", "collect=off", "inline=off", "standback=off", "striping=off", "batches=off", "reno=off"} {
		before := s.Tuning
		require.NoError(t, s.Add(text))
		require.NotEqual(t, before, s.Tuning, text)
	}
	require.Equal(t, tuning.Tuning{
		Algorithm: tuning.Long, NoPipes: true, NoCells: true, NoStaging: true,
		Rings: tuning.RingsAlways, NoCollecting: true, NoInline: true, NoStandBack: true,
		NoProtocols: transfer.All &^ transfer.Of(transfer.Register), NoSchemes: scheduler.Pack | scheduler.Merge, NoSockets: tcp.Batches | tcp.Reno,
		NoHugePages: true, NoStriping: true,
	}, s.Tuning)
	require.NoError(t, world.Run(t.Context(), 1, func(_ context.Context, w *world.World) error {
		require.Equal(t, s.Tuning, *job.Of(w).Tuning())
		return nil
	}, s.JobOptions()...))
}

func TestSwitchesThatForbidACellSayWhy(t *testing.T) {
	var s Settings
	require.NoError(t, s.Add("singleelement=on"))
	acc := cases.ByName("acc_flush_lat")
	assert.Empty(t, s.Forbids(cases.Cell{Case: acc, Size: 8}))
	assert.Equal(t, "singleelement=on, and it accumulates 128 elements", s.Forbids(cases.Cell{Case: acc, Size: 1024}))
	assert.Empty(t, s.Forbids(cases.Cell{Case: cases.ByName("put_flush_lat"), Size: 1024}))

	table := cases.Cell{Case: cases.ByName("hashtable_insert_rate"), Size: 1000}
	assert.Empty(t, s.Forbids(table))
	var same Settings
	require.NoError(t, same.Add("sameop=on"))
	assert.Equal(t, "sameop=on, and a hash table needs several operations", same.Forbids(table))
	assert.Empty(t, same.Forbids(cases.Cell{Case: acc, Size: 1024}))

	var cards Settings
	require.NoError(t, cards.Add("cardatomics=on"))
	assert.Equal(t, "cardatomics=on, and it accumulates floats", cards.Forbids(cases.Cell{Case: acc, Size: 8}))
	assert.Equal(t, "cardatomics=on, and it accumulates by xor", cards.Forbids(cases.Cell{Case: cases.ByName("update_rate"), Size: 1000}))
	assert.Empty(t, cards.Forbids(table))
	assert.Empty(t, cards.Forbids(cases.Cell{Case: cases.ByName("fop_lat"), Size: 8}))

	var off Settings
	require.NoError(t, off.Add("singleelement=off"))
	assert.Empty(t, off.Forbids(cases.Cell{Case: acc, Size: 1024}))
	assert.Empty(t, off.WindowOptions)
}
