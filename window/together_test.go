package window_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
)

// A keeper has the lock of a target for goroutines of its rank: for several at a time, of
// which the first locks and the last unlocks, or for one.
type keeper struct {
	// free has a token while no goroutine is about to lock or unlock.
	free  chan struct{}
	users int
}

// A flight is an operation that is not complete: its buffers are the library's.
type flight struct {
	*act
	origin, result []int64
	request        window.Request
	// requested tells that there is a request; settled that the buffers are the program's
	// again, and only others may not see what is put.
	requested, settled bool
}

func (f *flight) gets() bool { return f.call == "Get" || f.call == "RGet" }

func (f *flight) puts() bool { return f.call == "Put" || f.call == "RPut" || f.call == "PutNotify" }

// A runner is a goroutine that carries out a program.
type runner struct {
	*script
	win     *window.Window[int64]
	locking int
	keepers []keeper
	// random decides what has no influence on the outcome: when calls are cut short, what is
	// flushed and what is waited for.
	random  *rand.Rand
	flights []*flight
}

// attempt makes a call with a context that may end before it, and reports whether the call has ended otherwise.
func (r *runner) attempt(call func(ctx context.Context) error) bool {
	ctx, cancel := r.Ctx, context.CancelFunc(func() {})
	switch r.random.IntN(4) {
	case 0:
		ctx, cancel = context.WithCancel(r.Ctx)
		cancel()
	case 1:
		ctx, cancel = context.WithTimeout(r.Ctx, time.Duration(r.random.IntN(300))*time.Microsecond) // expires
	}
	defer cancel()
	err := call(ctx)
	if err != nil && r.Ctx.Err() == nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return false
	}
	r.OK(err)
	return true
}

// insist makes a call until it has ended.
func (r *runner) insist(call func(ctx context.Context) error) {
	for !r.attempt(call) {
	}
}

// borrow waits for the token of a keeper.
func (r *runner) borrow(k *keeper) {
	select {
	case <-k.free:
	case <-r.Ctx.Done():
		r.OK(r.Ctx.Err())
	}
}

// enter locks the target of a section.
func (r *runner) enter(s *section) {
	k := &r.keepers[s.target]
	if r.locking == lockedAll {
		return
	}
	r.borrow(k)
	if k.users++; k.users == 1 {
		r.insist(func(ctx context.Context) error { return r.win.Lock(ctx, s.kind, s.target) })
	}
	if r.locking == lockedTogether {
		k.free <- struct{}{}
	}
}

// leave unlocks it.
func (r *runner) leave(s *section) {
	k := &r.keepers[s.target]
	if r.locking == lockedAll {
		return
	}
	if r.locking == lockedTogether {
		r.borrow(k)
	}
	if k.users--; k.users == 0 {
		r.insist(func(ctx context.Context) error { return r.win.Unlock(ctx, s.target) })
		r.complete(s.target, true)
	}
	k.free <- struct{}{}
}

// run carries out a program.
func (r *runner) run(sections []section) {
	for i := range sections {
		s := &sections[i]
		r.enter(s)
		for j := range s.acts {
			r.do(&s.acts[j])
			r.look(s.acts[j].target)
		}
		r.leave(s)
	}
}

// do carries out an act.
func (r *runner) do(a *act) {
	switch a.call {
	case "flush":
	case "ticket":
		ticket := make([]int64, 1)
		r.issue(&act{call: "FetchAndOp", op: window.Sum, target: a.target, at: ticketsAt, values: []int64{1}}, ticket)
		r.insist(func(ctx context.Context) error { return r.win.FlushLocal(ctx, a.target) })
		r.complete(a.target, false)
		r.Check(ticket[0] >= 0 && ticket[0] < ticketsMost, "ticket %d of rank %d", ticket[0], a.target)
		r.issue(&act{call: "Accumulate", op: window.Sum, target: a.target, at: ticketsAt + 1 + int(ticket[0]), values: []int64{1}}, nil)
	case "pair":
		pair := make([]int64, 2)
		r.flushFor(a.target, pairAt, 2)
		r.issue(&act{call: "Get", target: a.target, at: pairAt, values: pair}, pair)
		r.insist(func(ctx context.Context) error { return r.win.Flush(ctx, a.target) })
		r.complete(a.target, true)
		r.Check(pair[0] == pair[1], "under an exclusive lock the pair of rank %d is %v", a.target, pair)
		r.issue(&act{call: "Put", target: a.target, at: pairAt, values: []int64{pair[0] + 1, pair[1] + 1}}, nil)
	default:
		r.flushFor(a.target, a.at, len(a.values))
		r.issue(a, make([]int64, len(a.values)))
	}
}

// flushFor completes what was put to or got from elements that are to be used.
func (r *runner) flushFor(target, at, count int) {
	if slices.ContainsFunc(r.flights, func(f *flight) bool {
		return (f.puts() || f.gets() && !f.settled) && f.target == target && f.at < at+count && at < f.at+len(f.values)
	}) {
		r.insist(func(ctx context.Context) error { return r.win.Flush(ctx, target) })
		r.complete(target, true)
	}
}

// issue calls an operation. The values are the model's, so it has a copy.
func (r *runner) issue(a *act, result []int64) {
	f := &flight{act: a, origin: slices.Clone(a.values), result: result}
	var err error
	switch a.call {
	case "Put":
		err = r.win.Put(f.origin, a.target, a.at)
	case "RPut":
		f.request, err = r.win.RPut(f.origin, a.target, a.at)
	case "PutNotify":
		err = r.win.PutNotify(f.origin, a.target, a.at, a.slot)
	case "Get":
		err = r.win.Get(result, a.target, a.at)
	case "RGet":
		f.request, err = r.win.RGet(result, a.target, a.at)
	case "Accumulate":
		err = r.win.Accumulate(a.op, f.origin, a.target, a.at)
	case "RAccumulate":
		f.request, err = r.win.RAccumulate(a.op, f.origin, a.target, a.at)
	case "GetAccumulate":
		err = r.win.GetAccumulate(a.op, f.origin, result, a.target, a.at)
	case "RGetAccumulate":
		f.request, err = r.win.RGetAccumulate(a.op, f.origin, result, a.target, a.at)
	case "FetchAndOp":
		err = r.win.FetchAndOp(a.op, f.origin[0], &result[0], a.target, a.at)
	case "CompareAndSwap":
		err = r.win.CompareAndSwap(a.compare, f.origin[0], &result[0], a.target, a.at)
	}
	r.OK(err)
	f.requested = a.call[0] == 'R'
	r.flights = append(r.flights, f)
}

// look may complete something.
func (r *runner) look(target int) {
	switch r.random.IntN(12) {
	case 0:
		if r.attempt(func(ctx context.Context) error { return r.win.Flush(ctx, target) }) {
			r.complete(target, true)
		}
	case 1:
		if r.attempt(func(ctx context.Context) error { return r.win.FlushLocal(ctx, target) }) {
			r.complete(target, false)
		}
	case 2:
		if r.locking == lockedAll && r.attempt(r.win.FlushAll) {
			r.complete(everywhere, true)
		}
	case 3:
		if r.locking == lockedAll && r.attempt(r.win.FlushLocalAll) {
			r.complete(everywhere, false)
		}
	case 4, 5, 6:
		for _, f := range r.flights {
			if f.requested && !f.settled && r.finished(f) {
				r.settle(f)
			}
		}
	}
}

// finished reports whether the request of an operation is complete. It may wait for it.
func (r *runner) finished(f *flight) bool {
	if r.random.IntN(2) == 0 {
		return r.attempt(f.request.Wait)
	}
	done, err := f.request.Test()
	r.OK(err)
	return done
}

const everywhere = -1

// complete notes that all operations on a target are complete there, or only that their
// buffers are the program's again.
func (r *runner) complete(target int, there bool) {
	r.flights = slices.DeleteFunc(r.flights, func(f *flight) bool {
		if target != everywhere && f.target != target {
			return false
		}
		if !f.settled {
			r.settle(f)
		}
		return there || f.gets()
	})
}

// settle checks the results, and overwrites the buffers, which nothing may use any more.
func (r *runner) settle(f *flight) {
	f.settled = true
	r.Check(f.want == nil || slices.Equal(f.result, f.want), "%s (%v) of %d elements of rank %d from %d on has read\n%v, want\n%v",
		f.call, f.op, len(f.values), f.target, f.at, f.result, f.want)
	fill(f.origin, -1)
	if f.want != nil {
		fill(f.result, -1)
	}
}

// runTogether runs the programs of a seed.
func runTogether(s *script, seed uint64, without scheduler.Scheme) {
	me, n := s.World.Rank(), s.World.Size()
	m := newModel(n)
	win := allocate[int64](s, len(m.parts[me]), hint.Without(without), window.Notifications(noticeSlots))
	for round := range 2 * lockings {
		locking := (round + int(seed%lockings)) % lockings
		clear(m.notices)
		mine := make([][]section, crew)
		for number := range n * crew {
			random := rand.New(rand.NewPCG(seed<<8|uint64(round), uint64(number)))
			sections := m.program(random, number, locking)
			if number/crew == me {
				mine[number%crew] = sections
			}
		}
		where := fmt.Sprintf("%s: without %#x, round %d (locking %d), rank %d", testsize.Replay("TestTogether", seed, testsize.Least), without, round, locking, me)
		if locking == lockedAll {
			s.OK(win.LockAll(s.Ctx))
		}
		runners := runCrew(s, win, locking, mine, seed, where)
		if locking == lockedAll {
			s.OK(win.UnlockAll(s.Ctx))
		}
		for _, r := range runners {
			r.complete(everywhere, true)
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Sync())
		equalElements(s, fmt.Sprintf("%s: the window, in which places of programs begin at %d, each has %d,", where, ownAt, ownCount), win.Local(), m.parts[me])
		for slot, count := range m.notices[me] {
			told, err := win.TestNotify(slot, count)
			s.OK(err)
			more, err := win.TestNotify(slot, 1)
			s.OK(err)
			s.Check(told && !more, "%s: slot %d has not %d notifications: %v, more: %v", where, slot, count, told, more)
		}
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(win.Close())
}

// runCrew runs a program in each of several goroutines of a rank.
func runCrew(s *script, win *window.Window[int64], locking int, programs [][]section, seed uint64, where string) []*runner {
	ctx, fail := context.WithCancelCause(s.Ctx)
	defer fail(nil)
	keepers := make([]keeper, s.World.Size())
	for i := range keepers {
		keepers[i].free = make(chan struct{}, 1)
		keepers[i].free <- struct{}{}
	}
	runners := make([]*runner, len(programs))
	var together sync.WaitGroup
	for i, sections := range programs {
		r := &runner{&script{jobtest.Script{Ctx: ctx, World: s.World}}, win, locking, keepers, rand.New(rand.NewPCG(seed, uint64(i))), nil}
		runners[i] = r
		together.Go(func() {
			if err := scripted(func(*script) { r.run(sections) })(ctx, s.World); err != nil {
				fail(fmt.Errorf("%s, goroutine %d: %w", where, i, err))
			}
		})
	}
	together.Wait()
	s.OK(context.Cause(ctx))
	return runners
}

// togetherSeeds is of how many seeds each form runs the programs in a plain run, in windows that leave out one way or
// another to arrange operations. The forms together leave out each.
const togetherSeeds = 3

// together returns bodies for forms of jobs.
func together(forms ...string) (names map[string]string) {
	names = make(map[string]string)
	schemes := []scheduler.Scheme{
		0, scheduler.Defer, scheduler.GetsFirst, scheduler.Interleave, scheduler.Pack, scheduler.Merge, scheduler.Early, scheduler.Adapt, scheduler.All,
	}
	for i, form := range forms {
		names[form] = register("programs of goroutines that share a window, "+form, func(s *script) {
			for seed := range testsize.Seeds(togetherSeeds) {
				runTogether(s, seed, schemes[(seed+uint64(i*togetherSeeds))%uint64(len(schemes))])
			}
		})
	}
	return names
}

var togetherBodies = together("apart", "goroutines", "tcp", "hosts")

// TestTogether runs random programs of several goroutines of each rank, whose calls are cut
// short at times. Where the ranks are processes the race detector sees nothing more.
func TestTogether(t *testing.T) {
	busy.Acquire(t)
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 3, togetherBodies["apart"]) })
	if testsize.Race {
		return
	}
	t.Run("goroutines", func(t *testing.T) { jobtest.Goroutines(t, 3, togetherBodies["goroutines"]) })
	t.Run("tcp", func(t *testing.T) { jobtest.TCP(t, 3, togetherBodies["tcp"]) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 4, togetherBodies["hosts"]) })
}
