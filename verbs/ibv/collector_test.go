//go:build ibverbs && cgo && linux

package ibv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// TestCollected puts and gets buffers that are dropped, collected and given back to the system while
// they are registered, and whose addresses others have then: the card has the page frames of those
// before, so that one that is taken for another would show. With one way to register all buffers, and
// with the library's choice.
func TestCollected(t *testing.T) {
	require.NoError(t, ibv.OpenCard(t).Close())
	const size = 1 << 20
	// Of 50 rounds one length each has ten, and each length is dropped and collected.
	rounds := max(50, testsize.N(150))
	for _, set := range []transfer.Set{transfer.Of(transfer.Cache), transfer.Of(transfer.CachingPipeline), transfer.All} {
		t.Run(set.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			var registered uint64
			parts := make([][]byte, 2)
			err := world.Run(ctx, 2, func(ctx context.Context, w *world.World) error {
				win, err := window.Allocate[byte](ctx, w, size)
				if err != nil {
					return err
				}
				parts[w.Rank()] = win.Local()
				if err := w.Barrier(ctx); err != nil || w.Rank() == 1 {
					return errors.Join(err, w.Barrier(ctx), win.Close())
				}
				if err := win.Lock(ctx, window.Shared, 1); err != nil {
					return err
				}
				r := rand.New(rand.NewPCG(1, 2))
				lengths := []int{500, 4096, 20_000, 64 << 10, 300_000}
				for round := range rounds {
					n := lengths[round/10%len(lengths)]
					out, back := make([]byte, n), make([]byte, n)
					for i := range out {
						out[i] = byte(r.Uint32())
					}
					for range 2 {
						if err := errors.Join(win.Put(out, 1, 0), win.Flush(ctx, 1)); err != nil {
							return err
						}
						if !bytes.Equal(out, parts[1][:n]) {
							return fmt.Errorf("round %d: %d bytes were put, and others have come", round, n)
						}
						if err := errors.Join(win.Get(back, 1, 0), win.Flush(ctx, 1)); err != nil {
							return err
						}
						if !bytes.Equal(out, back) {
							return fmt.Errorf("round %d: %d bytes were got, and others have come", round, n)
						}
					}
					switch round % 6 {
					case 2:
						runtime.GC()
					case 5:
						debug.FreeOSMemory()
					}
				}
				stats := w.Stats().Transfers
				registered = stats.Kept.Invalidations
				return errors.Join(win.Unlock(ctx, 1), w.Barrier(ctx), win.Close())
			}, world.WithDevice("ibv"), job.Tune(func(t *tuning.Tuning) { t.NoProtocols = transfer.All &^ set }))
			require.NoError(t, err)
			if set != transfer.All {
				require.NotZero(t, registered, "no region was retired because its memory was gone")
			}
		})
	}
}
