package main

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
	var s settings
	for _, text := range []string{"transfer=register", "rings=on", "hugepages=off", "pipes=off", "notes=off", "staging=off", "algorithm=long", "pack=off", "merge=off", "collect=off", "inline=off", "standback=off", "striping=off", "batches=off", "reno=off"} {
		before := s.tuning
		require.NoError(t, s.set(text))
		require.NotEqual(t, before, s.tuning, text)
	}
	require.Equal(t, tuning.Tuning{
		Algorithm: tuning.Long, NoPipes: true, NoCells: true, NoStaging: true,
		Rings: tuning.RingsAlways, NoCollecting: true, NoInline: true, NoStandBack: true,
		NoProtocols: transfer.All &^ transfer.Of(transfer.Register), NoSchemes: scheduler.Pack | scheduler.Merge, NoSockets: tcp.Batches | tcp.Reno,
		NoHugePages: true, NoStriping: true,
	}, s.tuning)
	require.NoError(t, world.Run(t.Context(), 1, func(_ context.Context, w *world.World) error {
		require.Equal(t, s.tuning, *job.Of(w).Tuning())
		return nil
	}, s.ofJob()...))
}

func TestSwitchesThatForbidACellSayWhy(t *testing.T) {
	var s settings
	require.NoError(t, s.set("singleelement=on"))
	acc := cases.ByName("acc_flush_lat")
	assert.Empty(t, s.forbids(cases.Cell{Case: acc, Size: 8}))
	assert.Equal(t, "singleelement=on, and it accumulates 128 elements", s.forbids(cases.Cell{Case: acc, Size: 1024}))
	assert.Empty(t, s.forbids(cases.Cell{Case: cases.ByName("put_flush_lat"), Size: 1024}))

	table := cases.Cell{Case: cases.ByName("hashtable_insert_rate"), Size: 1000}
	assert.Empty(t, s.forbids(table))
	var same settings
	require.NoError(t, same.set("sameop=on"))
	assert.Equal(t, "sameop=on, and a hash table needs several operations", same.forbids(table))
	assert.Empty(t, same.forbids(cases.Cell{Case: acc, Size: 1024}))

	var cards settings
	require.NoError(t, cards.set("cardatomics=on"))
	assert.Equal(t, "cardatomics=on, and it accumulates floats", cards.forbids(cases.Cell{Case: acc, Size: 8}))
	assert.Equal(t, "cardatomics=on, and it accumulates by xor", cards.forbids(cases.Cell{Case: cases.ByName("update_rate"), Size: 1000}))
	assert.Empty(t, cards.forbids(table))
	assert.Empty(t, cards.forbids(cases.Cell{Case: cases.ByName("fop_lat"), Size: 8}))

	var off settings
	require.NoError(t, off.set("singleelement=off"))
	assert.Empty(t, off.forbids(cases.Cell{Case: acc, Size: 1024}))
	assert.Empty(t, off.options)
}
