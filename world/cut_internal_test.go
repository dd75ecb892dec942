package world

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// A rank that calls again what its context has cut short says at once whom it waits for, without another look: others may look
// at it only while it has just begun again.
func TestCutShortAndCalledAgain(t *testing.T) {
	const absent = 1
	barrier := func(ctx context.Context, w *World) error { return w.Barrier(ctx) }
	for name, call := range map[string]func(ctx context.Context, w *World) error{
		"a meeting": barrier,
		"messages":  func(ctx context.Context, w *World) error { return Broadcast(ctx, w, absent, make([]int, 1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan struct{})
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == absent {
					select {
					case <-told:
					case <-ctx.Done():
					}
					return errors.Join(call(ctx, w), barrier(ctx, w))
				}
				noted := func() bool { return w.ledger.plight.Load() != 0 }
				// cut makes the call until this rank has noted whom it waits for.
				cut := func(call func(ctx context.Context, w *World) error) error {
					short, stop := context.WithCancel(ctx)
					defer stop()
					ended := make(chan error, 1)
					go func() { ended <- call(short, w) }()
					late := await.Until(ctx, "a rank to note whom it waits for", noted)
					stop()
					err := <-ended
					if late != nil {
						return errors.Join(late, err)
					}
					if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rank 1") || noted() {
						return fmt.Errorf("the call ends with %w, noted is %v", err, noted())
					}
					return nil
				}
				if err := cut(call); err != nil {
					return err
				}
				// It sleeps for as long as the test may last before it looks again.
				w.settings.longestSleep = 4 * await.Limit
				if err := cut(call); err != nil {
					return err
				}
				w.settings.longestSleep = time.Second
				// What was cut short in one call is nothing of another.
				w.cut.noted.Store((&plight{call: callBarrier, mark: 1<<callBits - 1, straggler: straggler{rank: absent}}).word())
				wait := w.NewWaiter()
				defer wait.Finish()
				if wait.resume(plight{call: callBarrier}); noted() {
					return errors.New("a wait goes on where another was cut short")
				}
				close(told)
				return errors.Join(call(ctx, w), barrier(ctx, w))
			}, append(apart(), sleepingBriefly)...))
		})
	}
}
