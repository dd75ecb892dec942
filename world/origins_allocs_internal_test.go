//go:build !race

package world

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// The race detector allocates.

// Nothing is allocated to move memory that the card does not know, whichever way it goes, but what is
// allocated for other memory too.
func TestUnknownAllocatesNothing(t *testing.T) {
	for _, protocol := range []transfer.Protocol{transfer.Copy, transfer.CopyPipeline, transfer.Superpipeline, transfer.Cache, transfer.CachingPipeline} {
		t.Run(protocol.String(), func(t *testing.T) {
			places, theirs := make([]Places, 1), make([]byte, 1<<20)
			fabric := shm.NewFabric()
			network := WithNetwork(func(int) (verbs.Device, error) {
				device, err := fabric.Open()
				return registering{device}, err
			})
			err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == 1 {
					region, err := w.Register(theirs, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
					if err != nil {
						return err
					}
					places[0] = region.Places()
				}
				if err := Broadcast(ctx, w, 1, places); err != nil || w.rank == 1 {
					return errors.Join(err, w.Barrier(ctx))
				}
				l, err := w.Link(1)
				if err != nil {
					return err
				}
				known, unknown, to := make([]byte, 1<<20), make([]byte, 1<<20), w.Place(1, &places[0])
				if _, err := w.Register(known, verbs.LocalWrite); err != nil {
					return err
				}
				for _, bytes := range []int{200, 8 << 10, 1 << 20} {
					moves := func(memory []byte) float64 {
						return testing.AllocsPerRun(100, func() {
							l.Use(memory, true)
							err = errors.Join(err, l.Write(ctx, memory, to, 0), l.Read(ctx, memory, to, 0), l.Flush(ctx))
						})
					}
					moves(unknown[:bytes])
					moves(known[:bytes])
					// The device under this one may allocate.
					require.LessOrEqual(t, moves(unknown[:bytes]), moves(known[:bytes]), "%d bytes", bytes)
				}
				return errors.Join(err, w.Barrier(ctx))
			}, WithDevice("tcp"), network, WithTransfers(transfer.Of(protocol)))
			require.NoError(t, err)
		})
	}
}
