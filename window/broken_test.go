package window_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// TestFailedFence has a rank die in a Fence after it has sent its messages. One other rank calls the Fence only when
// the rest have returned an error from it. That rank must not pass a Fence that the others have given up. The others
// must not free memory that a rank which passed would put to. On one core the ranks meet at the root, on four each
// sends to some others.
func TestFailedFence(t *testing.T) {
	for _, cores := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d cores", cores), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
			gaveUp, late, closed := make(chan error, 3), make(chan error), make(chan struct{})
			died := errors.New("dies")
			err := world.Run(t.Context(), 4, scripted(func(s *script) {
				win := allocate[int64](s, 4)
				s.OK(win.Fence(s.Ctx))
				s.OK(win.Put([]int64{42}, s.World.Rank(), 0))
				switch s.World.Rank() {
				case 0:
					for range 2 {
						s.Lost(<-gaveUp, 3)
					}
					err := win.Fence(s.Ctx)
					late <- err
					s.Lost(err, 3)
					<-closed
					s.Check(win.Put([]int64{7}, 1, 1) != nil, "an epoch is open to a rank that has closed the window")
					s.Lost(win.Fence(s.Ctx, window.NoSucceed), 3)
					s.OK(win.Close())
				case 1:
					gaveUp <- win.Fence(s.Ctx)
					<-late
					s.OK(win.Close())
					close(closed)
					s.Check(win.Local()[0] == 42, "memory that others may use has been given back")
				case 2:
					gaveUp <- win.Fence(s.Ctx)
					<-closed
				case 3:
					ctx, stop := context.WithCancel(s.Ctx)
					parked := make(chan error, 1)
					go func() {
						// It waits, as ranks 1 and 2 do: it has told the others.
						parked <- await.UntilParked(ctx, "window.(*untyped).Fence", 3)
						stop()
					}()
					err := win.Fence(ctx)
					stop()
					s.OK(<-parked)
					s.OK(errors.Join(died, err))
				}
			}))
			require.ErrorIs(t, err, died)
			var lost *world.PeerError
			require.False(t, errors.As(err, &lost), "%v", err)
			var failed *world.RankError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, 3, failed.Rank, "%v", err)
		})
	}
}
