package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// Every switch has an exhibit, in the order of switches, of a value that it may have and does not have by
// default, and of cases that can be measured so.
func TestExhibits(t *testing.T) {
	all, of := exhibits(), toggles()
	require.Len(t, all, len(of))
	for i, e := range all {
		name, value, _ := strings.Cut(e.set, "=")
		require.Equal(t, of[i].name, name)
		require.Contains(t, of[i].values[1:], value, e.set)
		s, err := newShow(e, of[i], &switchesOptions{rounds: 1, repeat: 1})
		require.NoError(t, err, e.set)
		require.NotEmpty(t, s.rows, e.set)
		for side, o := range s.sides {
			for _, r := range s.rows {
				require.Empty(t, o.settings.forbids(r.cell), "%s, value %s", e.set, s.values[side])
			}
		}
	}
	// What was thrown here holds for the process.
	for _, t := range of {
		_ = t.throw(new(settings), t.values[0])
	}
}

// A job has the switches that its flags set.
func TestSwitchesReachTheJob(t *testing.T) {
	var s settings
	for _, text := range []string{"transfer=register", "rings=on", "hugepages=off", "pipes=off", "notes=off", "staging=off", "algorithm=long", "pack=off", "merge=off", "collect=off", "inline=off", "standback=off", "striping=off", "batches=off", "reno=off"} {
		before := s.tuning
		require.NoError(t, s.set(text))
		require.NotEqual(t, before, s.tuning, text)
	}
	require.Equal(t, tuning.Tuning{
		Algorithm: tuning.Long, NoPipes: true, NoNotes: true, NoStaging: true,
		Rings: tuning.RingsAlways, NoCollecting: true, NoInline: true, NoStandBack: true,
		NoProtocols: transfer.All &^ transfer.Of(transfer.Register), NoSchemes: scheduler.Pack | scheduler.Merge, NoSockets: tcp.Batches | tcp.Reno,
		NoHugePages: true, NoStriping: true,
	}, s.tuning)
	require.NoError(t, world.Run(t.Context(), 1, func(_ context.Context, w *world.World) error {
		require.Equal(t, s.tuning, *job.Of(w).Tuning())
		return nil
	}, s.ofJob()...))
}

func TestSwitches(t *testing.T) {
	var text, errs bytes.Buffer
	names, want := []string{"inline", "cardatomics"}, []string{"inline=off", "cardatomics=on", "sim:ndr-2024", "put_flush_lat"}
	if testsize.Size() > 1 {
		names, want = append(names, "striping"), append(want, "striping=off")
	}
	require.Equal(t, 0, run(context.Background(), append([]string{"switches", "-repeat", "1"}, names...), &text, &errs), "%s", &errs)
	for _, line := range want {
		require.Contains(t, text.String(), line)
	}
	text.Reset()
	require.Equal(t, 0, run(context.Background(), []string{"switches", "-repeat", "1", "-format", "json", "inline"}, &text, &errs), "%s", &errs)
	var row showRow
	require.NoError(t, json.Unmarshal(text.Bytes(), &row))
	require.Equal(t, "inline", row.Switch)
	// What is inline spares the card a read of memory.
	require.Greater(t, *row.Ratio.Median, 1.05)
	o, err := parseSwitches([]string{"transfer=register", "inline"}, &errs)
	require.NoError(t, err)
	require.Len(t, o.shows, 2)
	require.Equal(t, "transfer=register", o.shows[0].set)
	require.Equal(t, "inline=off", o.shows[1].set)
	for _, wrong := range []struct {
		args []string
		says string
	}{
		{[]string{"-rounds", "0"}, "at least 1"},
		{[]string{"-repeat", "0"}, "at least 1"},
		{[]string{"-format", "xml"}, "text and json"},
		{[]string{"turbo"}, `no switch "turbo"; there are copy`},
		{[]string{"inline", "inline=off"}, "named twice"},
		{[]string{"copy=auto"}, "copy=auto: auto is the default; allowed are copy=plain, copy=vector, copy=string"},
		{[]string{"copy="}, "copy=: auto is the default; allowed are copy=plain"},
	} {
		errs.Reset()
		require.Equal(t, 2, run(context.Background(), append([]string{"switches"}, wrong.args...), &text, &errs))
		require.Contains(t, errs.String(), wrong.says)
	}
}
