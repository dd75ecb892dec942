package window

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// A rank hears that it has a lock of another although a message of that one waits for a Fence
// which this rank has not ended: it comes to that only when it has what it has locked.
func TestGrantBeforeFence(t *testing.T) {
	cut := make(chan struct{})
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		ctx, cancel := context.WithTimeout(ctx, await.Limit)
		defer cancel()
		fenced, err := Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		locked, err := Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		err = errors.Join(fenced.Fence(ctx), w.Barrier(ctx))
		if w.Rank() == 1 {
			<-cut
			err = errors.Join(err, fenced.Fence(ctx), fenced.Put([]int64{7}, 0, 0), fenced.Fence(ctx))
		} else {
			soon, end := context.WithTimeout(ctx, 10*time.Millisecond) // expires
			if e := fenced.Fence(soon); !errors.Is(e, context.DeadlineExceeded) {
				err = errors.Join(err, fmt.Errorf("error of a Fence cut short is %v", e))
			}
			end()
			close(cut)
			for waits := false; !waits && ctx.Err() == nil; runtime.Gosched() {
				job.Of(w).Poll()
				job.Of(w).Exclude(func() { waits = fenced.core.server.delays[1] != nil })
			}
			var old int64
			err = errors.Join(err, locked.Lock(ctx, Exclusive, 1), locked.FetchAndOp(Sum, 5, &old, 1, 0), locked.Flush(ctx, 1), locked.Unlock(ctx, 1),
				fenced.Fence(ctx), fenced.Fence(ctx))
			if got := fenced.Local()[0]; got != 7 {
				err = errors.Join(err, fmt.Errorf("what was put is %d", got))
			}
		}
		return errors.Join(err, fenced.Fence(ctx, NoSucceed), locked.Close(), fenced.Close())
	}, world.WithDevice("tcp")))
}
