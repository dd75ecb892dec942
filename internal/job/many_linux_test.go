package job_test

import (
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
)

// sockets is how many this process has open.
func (s *script) sockets() (n int) {
	names, err := filepath.Glob("/proc/self/fd/*")
	s.OK(err)
	for _, name := range names {
		// One that was closed meanwhile is none.
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// many has each rank put to the next, and count its sockets. A rank but the first has to do
// with the root, with those beside it in a tree, at most as many as the last rank has bits,
// and with its neighbors: with each over two connections for letters and two for the rest.
var many = register("many ranks over tcp", func(s *script) {
	before := s.sockets()
	win, err := window.Allocate[int64](s.Ctx, s.World, 1)
	s.OK(err)
	next := (s.me + 1) % s.n
	for round := range 3 {
		s.OK(win.Fence(s.Ctx))
		s.OK(win.Put([]int64{int64(s.me + round)}, next, 0))
		s.OK(win.Fence(s.Ctx, window.NoSucceed))
		s.Check(win.Local()[0] == int64((s.me+s.n-1)%s.n+round), "%d was put in round %d", win.Local()[0], round)
	}
	most := 4 * (bits.Len(uint(s.n-1)) + 3)
	if opened := s.sockets() - before; s.me != 0 && opened > most {
		s.Check(false, "rank %d of %d has opened %d sockets, more than %d", s.me, s.n, opened, most)
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Close())
})

// Many processes over TCP connect to those that they need, on first use, and fence.
func TestManyOverTCP(t *testing.T) {
	busy.Acquire(t)
	jobtest.TCP(t, min(testsize.N(16), 64), many)
}

// idling has rank 0 wait for rank 1, which is idle outside of any call.
var idling = register("idle over tcp", func(s *script) {
	l, err := job.Of(s.World).Link(1 - s.me)
	s.OK(err)
	s.OK(l.Flush(s.Ctx))
	for rank, what := range []string{"Barrier", "a rank outside of any call"} {
		s.Sleeps(rank, what, func() {}, func(span time.Duration) {
			if s.me == 1 {
				time.Sleep(span) // computes
			}
			s.Barrier()
		})
	}
})

func TestIdleOverTCP(t *testing.T) {
	busy.Acquire(t)
	jobtest.TCP(t, 2, idling)
}
