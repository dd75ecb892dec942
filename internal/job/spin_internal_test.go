package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs/tcp"
)

// A rank spins as long as its device says, however often a poll of that looks.
func TestSpinOfDevices(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []Option
		dwells  bool
	}{
		{"a device that is no server", apart(), false},
		{"one that does not dwell", []Option{WithDevice("tcp"), Tune(func(t *tuning.Tuning) { t.NoSockets = tcp.Dwell })}, false},
		{"one that dwells", []Option{WithDevice("tcp")}, true},
	} {
		err := Run(t.Context(), 1, func(_ context.Context, w *World) error {
			spin := w.cards[networkCard].attributes.Spin
			require.Positive(t, spin, c.name)
			if c.dwells {
				require.Less(t, w.engine.Limits().SpinRounds, int(spin/pollTime), c.name)
				require.Positive(t, w.engine.Limits().SpinRounds, c.name)
			} else {
				require.Equal(t, int(spin/pollTime), w.engine.Limits().SpinRounds, c.name)
			}
			return nil
		}, c.options...)
		require.NoError(t, err)
	}
}
