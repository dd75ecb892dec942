package main

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/internal/testsize"
)

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
	var row struct {
		Switch string
		Ratio  stats.Series
	}
	require.NoError(t, json.Unmarshal(text.Bytes(), &row))
	require.Equal(t, "inline", row.Switch)
	// What is inline spares the card a read of memory.
	require.Greater(t, *row.Ratio.Median, 1.05)
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
