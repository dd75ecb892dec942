package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
)

// severalPieces is more memory than is backed before a context is looked at.
const severalPieces = 5 << 20

// backing makes windows that are backed piece by piece, in calls whose context is over. Until its part is backed a rank has told
// the others nothing: it may call something else.
var backing = register("backing cut short", func(s *script) {
	ended, end := context.WithCancel(s.Ctx)
	end()
	_, err := window.Allocate[byte](ended, s.World, severalPieces)
	s.Fails(err, context.Canceled)
	s.Check(err.Error() == "window: Allocate: backing 5242880 bytes with memory: context canceled", "%v", err)
	s.OK(s.World.Barrier(s.Ctx))
	// With other arguments it is another window.
	_, err = window.Allocate[byte](ended, s.World, severalPieces+1)
	s.Fails(err, context.Canceled)
	s.OK(s.World.Barrier(s.Ctx))
	win, err := window.Allocate[byte](s.Ctx, s.World, severalPieces+1)
	s.OK(err)
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.Fence(s.Ctx))
	s.OK(win.Put([]byte{7}, next, severalPieces))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.Check(win.Local()[severalPieces] == 7 && win.Local()[0] == 0, "the ends are %d and %d", win.Local()[0], win.Local()[severalPieces])
	s.OK(win.Close())
})

// TestBackingCutShort is of ranks whose memory is backed in pieces.
func TestBackingCutShort(t *testing.T) {
	if testsize.Race {
		t.Skip("skipped: the race detector sees memory of the Go heap only, which is not backed in pieces")
	}
	t.Run("goroutines", func(t *testing.T) { jobtest.Goroutines(t, 2, backing) })
	t.Run("processes", func(t *testing.T) { jobtest.Processes(t, 2, backing) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, backing) })
}

// sparseEnds writes to both ends of parts that are larger than the machine's memory, or that of its control group.
var sparseEnds = register("sparse", func(s *script) {
	const count = 1 << 43
	_, err := window.Allocate[byte](s.Ctx, s.World, count)
	s.Fails(err, verbs.ErrMemory)
	// What is given back is gone through.
	const sparse = count >> 3
	win := allocate[byte](s, sparse, window.Sparse())
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.Fence(s.Ctx))
	s.OK(win.Put([]byte{1}, next, 0))
	s.OK(win.Put([]byte{2}, next, sparse-1))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.Check(win.Local()[0] == 1 && win.Local()[sparse-1] == 2 && win.Local()[sparse/2] == 0, "the ends are %d and %d", win.Local()[0], win.Local()[sparse-1])
	s.OK(win.Close())
})

// sparseMapped is of parts that peers map, which are within the machine's memory.
var sparseMapped = register("sparse and mapped", func(s *script) {
	const count = 1 << 20
	win := allocate[int64](s, count, window.Sparse())
	s.OK(win.LockAll(s.Ctx))
	for target := range s.World.Size() {
		s.OK(win.Accumulate(window.Sum, []int64{1}, target, count-1))
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Fence(s.Ctx))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.Check(win.Local()[count-1] == int64(s.World.Size()) && win.Local()[0] == 0, "%d, want %d", win.Local()[count-1], s.World.Size())
	s.OK(win.Close())
	// Ranks that disagree have no window.
	var options []window.Option
	if s.World.Rank() == 0 {
		options = append(options, window.Sparse())
	}
	_, err := window.Allocate[int64](s.Ctx, s.World, 1, options...)
	var differ *window.MismatchError
	s.Check(errors.As(err, &differ) && differ.What == "options", "Allocate with Sparse on rank 0 only: %v", err)
})

// TestSparse is of windows that are backed where they are touched.
func TestSparse(t *testing.T) {
	t.Run("mapped", func(t *testing.T) { jobtest.Run(t, 3, sparseMapped) })
	if testsize.Race {
		t.Skip("skipped: the race detector sees memory of the Go heap only, which is not larger than the machine's")
	}
	t.Run("goroutines", func(t *testing.T) { jobtest.Goroutines(t, 2, sparseEnds) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, sparseEnds) })
}
