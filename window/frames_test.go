package window_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
)

// An epochKind is an epoch with small operations, and how many frames each rank sends in
// one, over the network: frames of rank r of n.
type epochKind struct {
	name   string
	run    func(s *script, win *window.Window[int64])
	frames func(rank, size int) int
	// locked: within LockAll.
	locked bool
}

// small has rank 0 put to every second element of rank 1, and where gets is set get.
func small(s *script, win *window.Window[int64], gets bool) {
	values, got := []int64{1, 2, 3, 4, 5, 6, 7, 8}, [8]int64{}
	for i := range values {
		s.OK(win.Put(values[i:i+1], 1, 2*i))
		if gets {
			s.OK(win.Get(got[i:i+1], 1, 2*i+1))
		}
	}
}

// active is Start and Complete of rank 0 with Post and Wait of rank 1.
func active(gets bool) func(s *script, win *window.Window[int64]) {
	return func(s *script, win *window.Window[int64]) {
		if s.World.Rank() == 1 {
			s.OK(win.Post(s.Ctx, groupOf(s, win, 0)))
			s.OK(win.Wait(s.Ctx))
			return
		}
		s.OK(win.Start(s.Ctx, groupOf(s, win, 1)))
		small(s, win, gets)
		s.OK(win.Complete(s.Ctx))
	}
}

// byOrigin has rank 0 do f, while rank 1 only serves.
func byOrigin(f func(s *script, win *window.Window[int64])) func(s *script, win *window.Window[int64]) {
	return func(s *script, win *window.Window[int64]) {
		if s.World.Rank() == 0 {
			f(s, win)
		}
	}
}

func each(frames ...int) func(rank, size int) int {
	return func(rank, _ int) int { return frames[rank] }
}

var epochKinds = []epochKind{
	{"puts of Start and Complete", active(false), each(1, 1), false},
	{"gets of Start and Complete", active(true), each(1, 2), false},
	{"Fence", func(s *script, win *window.Window[int64]) {
		if s.World.Rank() == 0 {
			small(s, win, false)
		}
		s.OK(win.Fence(s.Ctx))
	}, each(1, 1), false},
	{"puts and Flush", byOrigin(func(s *script, win *window.Window[int64]) {
		small(s, win, false)
		s.OK(win.Flush(s.Ctx, 1))
	}), each(1, 1), true},
	{"accumulates, fetches and Flush", byOrigin(func(s *script, win *window.Window[int64]) {
		var old [20]int64
		for i := range old {
			s.OK(win.Accumulate(window.Sum, []int64{1}, 1, i))
			s.OK(win.FetchAndOp(window.Sum, 1, &old[i], 1, i))
		}
		s.OK(win.Flush(s.Ctx, 1))
	}), each(1, 1), true},
	{"puts under a lock", byOrigin(func(s *script, win *window.Window[int64]) {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		small(s, win, false)
		s.OK(win.Unlock(s.Ctx, 1))
	}), each(1, 1), false},
	{"gets and puts under a lock", byOrigin(func(s *script, win *window.Window[int64]) {
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		small(s, win, true)
		s.OK(win.Unlock(s.Ctx, 1))
	}), each(1, 1), false},
	{"a lock without operations", byOrigin(func(s *script, win *window.Window[int64]) {
		s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
		s.OK(win.Unlock(s.Ctx, 1))
	}), each(0, 0), false},
	{"a strided put and Flush", byOrigin(func(s *script, win *window.Window[int64]) {
		blocks := window.Strided(8, 2, 4)
		s.OK(win.PutLayout(make([]int64, 30), blocks, 1, 0, blocks))
		s.OK(win.Flush(s.Ctx, 1))
	}), each(1, 1), true},
}

// counted runs an epoch many times and counts the frames. Messages that are sent now and then besides, such as credits
// for eager buffers, are fewer than one in two epochs, with the barrier that follows.
func counted(kind epochKind) string {
	return register("frames: "+kind.name, func(s *script) {
		const epochs = 64
		win := allocate[int64](s, 64, hint.Without(scheduler.Adapt))
		ended := allocate[int64](s, 1, window.Notifications(1))
		if kind.locked {
			s.OK(win.LockAll(s.Ctx))
		}
		if kind.name == "Fence" {
			s.OK(win.Fence(s.Ctx))
		}
		for range 8 {
			kind.run(s, win)
		}
		s.OK(s.World.Barrier(s.Ctx))
		// No rank begins before the others have counted. These may only serve.
		before := job.Of(s.World).Frames()
		s.OK(s.World.Barrier(s.Ctx))
		for range epochs {
			kind.run(s, win)
		}
		// That one which only serves has served all. It waits for that here, as in a barrier it
		// would ask now and then what the other does.
		if s.World.Rank() == 0 {
			s.OK(ended.Lock(s.Ctx, window.Shared, 1))
			s.OK(ended.PutNotify([]int64{1}, 1, 0, 0))
			s.OK(ended.Unlock(s.Ctx, 1))
		} else {
			s.OK(ended.WaitNotify(s.Ctx, 0, 1))
		}
		sent := job.Of(s.World).Frames() - before
		want := uint64(kind.frames(s.World.Rank(), s.World.Size())) * epochs
		s.Check(sent >= want && sent < want+epochs/2, "%s: rank %d sent %d frames in %d epochs, want %d", kind.name, s.World.Rank(), sent, epochs, want)
		s.OK(s.World.Barrier(s.Ctx))
		if kind.name == "Fence" {
			s.OK(win.Fence(s.Ctx, window.NoSucceed))
		}
		if kind.locked {
			s.OK(win.UnlockAll(s.Ctx))
		}
		s.OK(ended.Close())
		s.OK(win.Close())
	})
}

// Epochs with small operations take the messages that they must, and no more.
func TestFrames(t *testing.T) {
	busy.Acquire(t)
	jobtest.TCP(t, 2, allFrames)
}

var frameBodies = func() (bodies []string) {
	for _, kind := range epochKinds {
		bodies = append(bodies, counted(kind))
	}
	return bodies
}()

// allFrames counts the frames of each kind of epochs, one kind after the other.
var allFrames = register("frames: all kinds of epochs", func(s *script) { s.inTurn(frameBodies) })

// inTurn runs bodies one after the other.
func (s *script) inTurn(bodies []string) {
	for _, body := range bodies {
		if err := jobtest.Checked(func() { scripts[body](s) }); err != nil {
			s.OK(fmt.Errorf("%s: %w", body, err))
		}
	}
}

// Among n ranks, each of which writes to k, a Fence takes a message to each of those and one for each round of a
// barrier. A rank that receives more eager messages than it sends returns credits now and then.
var manyFences = register("frames: Fence of many", func(s *script) {
	const epochs = 32
	rank, size := s.World.Rank(), s.World.Size()
	win := allocate[int64](s, 64, hint.Without(scheduler.Adapt))
	s.OK(win.Fence(s.Ctx))
	epoch := func() {
		for k := 1; k <= 2; k++ {
			s.OK(win.Put([]int64{1}, (rank+k)%size, rank))
		}
		s.OK(win.Fence(s.Ctx))
	}
	epoch()
	s.OK(s.World.Barrier(s.Ctx))
	before := job.Of(s.World).Frames()
	for range epochs {
		epoch()
	}
	sent, rounds := job.Of(s.World).Frames()-before, bits.Len(uint(size-1))
	// The first round goes with what is sent to the same rank.
	want := uint64(2+rounds-1) * epochs
	s.Check(sent >= want && sent < want+want/3, "rank %d of %d sent %d frames in %d fences, want %d", rank, size, sent, epochs, want)
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.OK(win.Close())
})

func TestFramesOfMany(t *testing.T) {
	busy.Acquire(t)
	sizes := []int{3, 5, 8}
	for _, i := range testsize.Turns(1, len(sizes), 1) {
		size := sizes[i]
		t.Run(fmt.Sprint(size), func(t *testing.T) { jobtest.TCP(t, size, manyFences) })
	}
}

// fencesOfHosts are epochs of four ranks on two hosts. Ranks 0 and 1 are the first of each. An epoch has the targets of
// each rank, and their number on the other host.
var fencesOfHosts = []struct {
	name      string
	writes    [4][]int
	elsewhere [4]uint64
}{
	{"all to all", [4][]int{{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}}, [4]uint64{2, 2, 2, 2}},
	{"one to one", [4][]int{3: {2}}, [4]uint64{3: 1}},
	{"within hosts", [4][]int{{2}, {3}, {0}, {1}}, [4]uint64{}},
}

// A Fence takes a message to each rank elsewhere that was written to, and one of the first rank
// of each host for all of it; which goes with what that has written to the other first, if
// nothing has come from there meanwhile. There are no answers.
func init() {
	for _, f := range fencesOfHosts {
		register("frames: Fence of hosts, "+f.name, func(s *script) {
			const epochs = 64
			rank := s.World.Rank()
			win := allocate[int64](s, 4, hint.Without(scheduler.Adapt))
			s.OK(win.Fence(s.Ctx))
			epoch := func(n int64) {
				for _, target := range f.writes[rank] {
					s.OK(win.Put([]int64{n}, target, rank))
				}
				s.OK(win.Fence(s.Ctx))
				for origin, targets := range f.writes {
					if slices.Contains(targets, rank) {
						s.Check(win.Local()[origin] == n, "rank %d: element of rank %d is %d in epoch %d", rank, origin, win.Local()[origin], n)
					}
				}
				// Nobody writes to what another still looks at.
				s.OK(win.Fence(s.Ctx, window.NoPrecede))
			}
			least, most := f.elsewhere[rank], f.elsewhere[rank]
			if rank < 2 {
				// The one for all of each Fence.
				least, most = max(least, 1)+1, most+2
			}
			epoch(1)
			s.OK(s.World.Barrier(s.Ctx))
			before := job.Of(s.World).Frames()
			for n := range int64(epochs) {
				epoch(n + 2)
			}
			sent := job.Of(s.World).Frames() - before
			s.Check(sent >= least*epochs && sent < most*epochs+epochs/2, "%s: rank %d sent %d frames in %d epochs, want %d to %d in each", f.name, rank, sent, epochs, least, most)
			s.OK(s.World.Barrier(s.Ctx))
			s.OK(win.Fence(s.Ctx, window.NoSucceed))
			s.OK(win.Close())
		})
	}
}

var allFencesOfHosts = register("frames: all Fences of hosts", func(s *script) {
	var bodies []string
	for _, f := range fencesOfHosts {
		bodies = append(bodies, "frames: Fence of hosts, "+f.name)
	}
	s.inTurn(bodies)
})

func TestFramesOfHosts(t *testing.T) {
	busy.Acquire(t)
	jobtest.Hosts(t, 4, allFencesOfHosts)
}
