//go:build !race

package job

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// The race detector allocates.

// Nothing is allocated to move memory that the card does not know, whichever way it goes, but what is
// allocated for other memory too.
func TestUnknownAllocatesNothing(t *testing.T) {
	for _, protocol := range []transfer.Protocol{transfer.Copy, transfer.CopyPipeline, transfer.Superpipeline, transfer.Cache, transfer.CachingPipeline} {
		t.Run(protocol.String(), func(t *testing.T) {
			towards(t, 1<<20, func(_ context.Context, l *Link, to verbs.RemoteRegion, _ []byte) error {
				// A long wait asks its context to end it, if that can, which allocates.
				ctx := context.Background()
				known, unknown := make([]byte, 1<<20), make([]byte, 1<<20)
				_, err := l.world.Register(known, verbs.LocalWrite)
				if err != nil {
					return err
				}
				tries := 20
				for _, bytes := range []int{200, 8 << 10, 1 << 20} {
					moves := func(memory []byte) float64 {
						return testing.AllocsPerRun(40, func() {
							l.Use(memory, true)
							err = errors.Join(err, l.Write(ctx, memory, to, 0), l.Read(ctx, memory, to, 0), l.Flush(ctx))
						})
					}
					// The device under this one may allocate. A place of its queue does when it is first used, and how many
					// places are used differs from run to run, so what counts is what each run allocates again.
					var more float64
					for again := true; again; again = more > 0 && tries > 0 {
						tries--
						more = moves(unknown[:bytes]) - moves(known[:bytes])
					}
					require.LessOrEqual(t, more, 0.0, "%d bytes", bytes)
				}
				return err
			}, append(knowingNone(), movedBy(transfer.Of(protocol)))...)
		})
	}
}
