//go:build ibverbs && cgo && linux

package ibv_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/oracle"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/world"
)

// TestPrograms runs random programs for windows on ranks that reach each other by the card. A third of
// them leave the accumulate family to it; half of them have one way for memory that it does not know.
func TestPrograms(t *testing.T) {
	require.NoError(t, ibv.OpenCard(t).Close())
	for seed := range testsize.Samples(t, 40) {
		p := oracle.Draw(seed, oracle.Limits{CardAtomics: seed%3 == 1})
		o := oracle.Options{Without: scheduler.Scheme(seed) & scheduler.All, Concurrent: seed%2 == 0}
		ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
		err := world.Run(ctx, p.Ranks, func(ctx context.Context, w *world.World) error { return oracle.Run(ctx, w, p, o) }, world.WithDevice("ibv"),
			job.Tune(func(t *tuning.Tuning) {
				t.MTU = []int{0, 1024, 4096}[seed/4%3]
				if seed%2 == 1 {
					t.NoProtocols = transfer.All &^ transfer.Of(transfer.Protocol(seed/2%uint64(transfer.Protocols)))
				}
			}))
		cancel()
		require.NoError(t, err, "seed %d: without %#x:\n%s", seed, o.Without, p)
	}
}
