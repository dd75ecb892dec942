package job

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A rank spins as long as its device says.
func TestSpinOfDevices(t *testing.T) {
	for _, c := range []struct {
		name    string
		options []Option
	}{
		{"a device that is no server", apart()},
		{"a server", []Option{WithDevice("tcp")}},
	} {
		err := Run(t.Context(), 1, func(_ context.Context, w *World) error {
			spin := w.cards[networkCard].attributes.Spin
			require.Positive(t, spin, c.name)
			require.Equal(t, int(spin/pollTime), w.engine.Limits().SpinRounds, c.name)
			return nil
		}, c.options...)
		require.NoError(t, err)
	}
}
