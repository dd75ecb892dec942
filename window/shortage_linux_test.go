package window_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/shortage"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// persist calls f until it hears of no shortage.
func (s *script) persist(f func() error) {
	err := f()
	for errors.Is(err, verbs.ErrShortage) {
		err = f()
	}
	s.OK(err)
}

// Of so many ranks rank 0 is not connected to the stranger before it has to be: no collective call
// has one wait for the other.
const shortRanks, stranger = 6, 3

// lack calls f while this process has no descriptor for its connection to the stranger, which it
// hears of now and then.
func (s *script) lack(f func(another *job.Link)) {
	end, err := shortage.Descriptors(0)
	s.OK(err)
	f(s.tell(stranger, jobtest.IdleService))
	s.OK(end())
}

// soonShort has rank 0 give up a connection soon that it cannot make. Nobody is taken for dead.
func soonShort() ([]world.Option, error) {
	return []world.Option{world.WithPeerTimeout(never), world.WithNetwork(func(rank int) (verbs.Device, error) {
		options := tcp.Options{Listen: "127.0.0.1:0", Silence: never, HandshakeLimit: await.Limit}
		if rank == 0 {
			options.HandshakeLimit = 3 * time.Second
		}
		return tcp.Open(options)
	})}, nil
}

// manyElements are of more messages than may be on the way at once, and someElements of several.
const manyElements, someElements = 1 << 20, 1 << 14

// registerShort registers what rank 0 calls, under a lock of rank 1, which serves no messages behind
// one for jobtest.BusyService until "cut short", and calls serve. Rank 0 accumulates 1 to each element of
// rank 1, and unlocks it.
func registerShort(name string, count int, serve func(s *script, win *window.Window[int64]), call func(s *script, win *window.Window[int64], ones []int64)) string {
	return jobtest.RegisterWith(name, soonShort, scripted(func(s *script) {
		later, stop := s.delay()
		defer stop()
		if s.World.Rank() == 1 {
			go func() {
				_ = jobtest.Hold("full")
				later.Store(true)
			}()
		}
		win := allocate[int64](s, count)
		switch s.World.Rank() {
		case 0:
			ones := make([]int64, count)
			fill(ones, 1)
			s.OK(take(s.Ctx, win, window.Exclusive, 1))
			call(s, win, ones)
		case 1:
			serve(s, win)
		default:
			// Rank 0 could not accept a connection of this one.
			s.OK(jobtest.Hold("idle"))
		}
		s.persist(func() error { return s.World.Barrier(s.Ctx) })
		if s.World.Rank() == 1 {
			ended, end := context.WithCancel(s.Ctx)
			end()
			s.OK(win.Lock(ended, window.Exclusive, 1))
			s.Check(allAre(win.Local(), 1), "elements are %d to %d, want 1", win.Local()[0], win.Local()[count-1])
			s.OK(win.Unlock(s.Ctx, 1))
		}
		s.OK(win.Close())
	}))
}

// Nothing of the accumulate leaves before this process is short: the call that is made again does
// all of it.
var shortBefore = registerShort("short before a long accumulate", someElements, idle, func(s *script, win *window.Window[int64], ones []int64) {
	s.crowd(1)
	s.lack(func(*job.Link) { s.Fails(win.Accumulate(window.Sum, ones, 1, 0), verbs.ErrShortage) })
	jobtest.Signal("cut short")
	s.persist(func() error { return win.Accumulate(window.Sum, ones, 1, 0) })
	s.persist(func() error { return win.Unlock(s.Ctx, 1) })
})

// A part of the accumulate has left when this process is short: the call goes on.
var shortAmid = registerShort("short amid a long accumulate", manyElements, idle, func(s *script, win *window.Window[int64], ones []int64) {
	link := s.tell(1, jobtest.BusyService)
	before := link.Mark()
	done := make(chan error, 1)
	go func() { done <- win.Accumulate(window.Sum, ones, 1, 0) }()
	for link.Mark() == before {
		job.Of(s.World).Poll()
	}
	s.lack(func(another *job.Link) {
		// The accumulate hears of it too, as a rule.
		s.Fails(another.Flush(s.Ctx), verbs.ErrShortage)
	})
	jobtest.Signal("cut short")
	s.OK(<-done)
	s.persist(func() error { return win.Unlock(s.Ctx, 1) })
})

// There is no room to tell of a post when this process is short: the Post that is made again tells of it.
var shortPost = registerShort("short in a post", someElements, func(s *script, win *window.Window[int64]) {
	for range 2 {
		s.OK(win.Start(s.Ctx, groupOf(s, win, 0)))
		s.OK(win.Complete(s.Ctx))
	}
}, func(s *script, win *window.Window[int64], ones []int64) {
	s.OK(win.Accumulate(window.Sum, ones, 1, 0))
	s.OK(win.Unlock(s.Ctx, 1))
	s.crowd(1)
	s.lack(func(*job.Link) { s.Fails(win.Post(s.Ctx, groupOf(s, win, 1)), verbs.ErrShortage) })
	s.Fails(win.Wait(s.Ctx), epoch.ErrBusy)
	jobtest.Signal("cut short")
	s.persist(func() error { return win.Post(s.Ctx, groupOf(s, win, 1)) })
	s.OK(win.Wait(s.Ctx))
	s.OK(win.Post(s.Ctx, groupOf(s, win, 1)))
	s.OK(win.Wait(s.Ctx))
})

// An Unlock has no room for its request while this process is short of descriptors. The repeated Unlock gives the lock
// back after the operations under it.
var shortUnlock = registerShort("short in an unlock", someElements, idle, func(s *script, win *window.Window[int64], ones []int64) {
	s.OK(win.Accumulate(window.Sum, ones[1:], 1, 1))
	s.OK(win.Flush(s.Ctx, 1))
	s.crowd(1)
	s.OK(win.Accumulate(window.Sum, ones[:1], 1, 0))
	s.lack(func(*job.Link) { s.Fails(win.Unlock(s.Ctx, 1), verbs.ErrShortage) })
	jobtest.Signal("cut short")
	s.persist(func() error { return win.Unlock(s.Ctx, 1) })
})

// shortages is for tests that wait until a rank has given up a connection, for the greater part of their time.
var shortages = jobtest.NewLimit(2)

func runShort(t *testing.T, name string) {
	shortages.Acquire(t)
	job := jobtest.StartWith(t, shortRanks, name, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
	for rank := 2; rank < shortRanks; rank++ {
		job.Await(rank, "idle")
	}
	job.Await(1, "full")
	job.Await(0, "cut short")
	for rank := 1; rank < shortRanks; rank++ {
		job.Release(rank)
	}
	for rank, err := range job.Wait() {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

func TestShortage(t *testing.T) {
	t.Parallel()
	cases := []string{shortBefore, shortUnlock, shortPost, shortAmid}
	for _, i := range testsize.Turns(0, len(cases), len(cases)) {
		t.Run(cases[i], func(t *testing.T) { runShort(t, cases[i]) })
	}
}
