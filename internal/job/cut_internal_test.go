package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

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
				stay := sync.OnceFunc(func() { close(told) })
				defer stay()
				// cut makes the call until a state has come about, and reports whether this rank has noted by then whom it
				// waits for.
				cut := func(what string, state func() bool) (noted bool, err error) {
					short, stop := context.WithCancel(ctx)
					defer stop()
					ended := make(chan error, 1)
					go func() { ended <- call(short, w) }()
					late := await.Until(ctx, what, state)
					noted = w.ledger.plight.Load() != 0
					stop()
					if err := <-ended; late != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "rank 1") {
						return noted, fmt.Errorf("the call is cut short: %w", errors.Join(late, err))
					}
					return noted, nil
				}
				if _, err := cut("a rank to note whom it waits for", func() bool { return w.ledger.plight.Load() != 0 }); err != nil {
					return err
				}
				if w.ledger.plight.Load() != 0 {
					return errors.New("a rank that waits no more is said to wait")
				}
				// The first sleep is short, and after it this rank has not slept long.
				slept, _ := w.engine.Sleeps()
				noted, err := cut("a rank to sleep", func() bool {
					now, _ := w.engine.Sleeps()
					return now > slept
				})
				if err != nil || !noted {
					return errors.Join(fmt.Errorf("a rank that calls again has noted whom it waits for: %v", noted), err)
				}
				// What was cut short in one call is nothing of another.
				w.cut.noted.Store((&plight{call: callBarrier, mark: 1<<callBits - 1, straggler: straggler{rank: absent}}).word())
				wait := w.NewWaiter()
				defer wait.Finish()
				if wait.resume(plight{call: callBarrier}); w.ledger.plight.Load() != 0 {
					return errors.New("a wait goes on where another was cut short")
				}
				stay()
				return errors.Join(call(ctx, w), barrier(ctx, w))
			}, apart()...))
		})
	}
}
