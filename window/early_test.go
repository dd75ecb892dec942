package window_test

import (
	"testing"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
)

// earlyEpochs has each rank complete an epoch to the next rank before it posts for the one
// before, so that what rides with the Complete waits at the target: nothing of it is done
// before the post, all of it before Wait returns, and the next epoch after that.
var earlyEpochs = register("epochs before their posts", func(s *script) {
	const epochs = 100
	size := s.World.Size()
	next, before := (s.World.Rank()+1)%size, (s.World.Rank()+size-1)%size
	// Ways that leave something out of the message with the Complete would have that wait for the post.
	win := allocate[int64](s, 1<<14, hint.Without(scheduler.Adapt))
	to, from := groupOf(s, win, next), groupOf(s, win, before)
	for n := range int64(epochs) {
		results := n%3 == 0
		access := func() {
			s.OK(win.Start(s.Ctx, to))
			s.OK(win.Accumulate(window.Sum, []int64{1}, next, 0))
			s.OK(win.Put([]int64{n}, next, 1))
			var got [1]int64
			if results {
				s.OK(win.Get(got[:], next, 2))
				// More than fits a message.
				s.OK(win.Put(make([]int64, 10_000), next, 10))
			}
			s.OK(win.Complete(s.Ctx))
			s.Check(!results || got[0] == n, "epoch %d: got %d", n, got[0])
		}
		if !results {
			access()
		}
		win.Local()[2] = n
		equal(s, "elements before the post", win.Local()[:2], []int64{n, max(n-1, 0)})
		s.OK(win.Post(s.Ctx, from))
		if results {
			access()
		}
		s.OK(win.Wait(s.Ctx))
		equal(s, "elements after the epoch", win.Local()[:2], []int64{n + 1, n})
	}
	s.OK(win.Close())
})

func TestEarlyEpochs(t *testing.T) {
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 3, earlyEpochs) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 2, earlyEpochs) })
}
