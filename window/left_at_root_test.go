package window_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

const leaver = 1

// leftRanks are more than there are cores: they wait at the root.
var leftRanks = runtime.NumCPU() + 2

// leftCalls are those of a window that wait for a rank which has left.
var leftCalls = map[string]func(s *script, win *window.Window[int64]){
	"Fence": func(s *script, win *window.Window[int64]) {
		err := win.Fence(s.ctx)
		var lost *world.PeerError
		s.check(errors.As(err, &lost) && errors.Is(err, world.ErrLeft) && lost.Rank == leaver, "error is %v, want that rank %d has left", err, leaver)
	},
	"Close": func(s *script, win *window.Window[int64]) { s.ok(win.Close()) },
}

// leaving has one rank leave while the others call. They stay until stay returns.
func leaving(call func(s *script, win *window.Window[int64]), stay func() error) func(s *script) {
	return func(s *script) {
		win := allocate[int64](s, 1)
		if s.w.Rank() == leaver {
			return
		}
		call(s, win)
		s.ok(stay())
	}
}

func init() {
	for name, call := range leftCalls {
		register("left at the root: "+name, leaving(call, func() error { return worldtest.Hold("told") }))
	}
}

// All that wait for a rank which has left hear of it, while each of them stays in the job.
func TestLeftAtRoot(t *testing.T) {
	for name, call := range leftCalls {
		t.Run(name+"/goroutines", func(t *testing.T) {
			var told sync.WaitGroup
			told.Add(leftRanks - 1)
			require.NoError(t, world.Run(t.Context(), leftRanks, scripted(leaving(call, func() error {
				told.Done()
				told.Wait()
				return nil
			}))))
		})
		t.Run(name+"/processes", func(t *testing.T) {
			job := worldtest.Start(t, leftRanks, "left at the root: "+name)
			for rank := range leftRanks {
				if rank != leaver {
					job.Await(rank, "told")
				}
			}
			for rank := range leftRanks {
				if rank != leaver {
					job.Release(rank)
				}
			}
			require.NoError(t, errors.Join(job.Wait()...))
		})
	}
}
