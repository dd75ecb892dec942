package world_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

func simulator(t *testing.T, seed uint64) *sim.Simulator {
	profile, err := sim.ByName("ndr-2024")
	require.NoError(t, err)
	s, err := sim.New(profile, seed)
	require.NoError(t, err)
	return s
}

func TestSimulate(t *testing.T) {
	for _, n := range []int{1, 2, 5, 64, 1024} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			s := simulator(t, 1)
			begun := time.Now()
			ended := make([]time.Duration, n)
			require.NoError(t, world.Simulate(t.Context(), s, n, func(ctx context.Context, w *world.World) error {
				for range 10 {
					if err := w.Barrier(ctx); err != nil {
						return err
					}
				}
				ended[w.Rank()] = w.Now()
				return nil
			}))
			t.Log(n, ended[0], time.Since(begun), s.Events())
		})
	}
}
