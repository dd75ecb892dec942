package window_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

const refusalCount = 20

// A refusal is a call that is refused: with which error, whose text names what.
type refusal struct {
	name string
	call func(s *script, win *window.Window[float64]) error
	want error
	says []string
}

var some = []float64{1, 2, 3}

// none is no context.
var none context.Context

// withoutContext are refused whatever is open.
var withoutContext = []struct {
	name string
	call func(win *window.Window[float64]) error
}{
	{"Fence", func(win *window.Window[float64]) error { return win.Fence(none) }},
	{"Start", func(win *window.Window[float64]) error { return win.Start(none, window.Group{}) }},
	{"Complete", func(win *window.Window[float64]) error { return win.Complete(none) }},
	{"Wait", func(win *window.Window[float64]) error { return win.Wait(none) }},
	{"Lock", func(win *window.Window[float64]) error { return win.Lock(none, window.Shared, 0) }},
	{"LockAll", func(win *window.Window[float64]) error { return win.LockAll(none) }},
	{"Flush", func(win *window.Window[float64]) error { return win.Flush(none, 0) }},
	{"FlushAll", func(win *window.Window[float64]) error { return win.FlushAll(none) }},
	{"FlushLocal", func(win *window.Window[float64]) error { return win.FlushLocal(none, 0) }},
	{"FlushLocalAll", func(win *window.Window[float64]) error { return win.FlushLocalAll(none) }},
	{"WaitNotify", func(win *window.Window[float64]) error { return win.WaitNotify(none, 0, 1) }},
	{"Request.Wait", func(*window.Window[float64]) error { return window.Request{}.Wait(none) }},
	{"Allocate", func(win *window.Window[float64]) error { return made(window.Allocate[int8](none, win.World(), 1)) }},
	{"Create", func(win *window.Window[float64]) error { return made(window.Create[int8](none, win.World(), nil)) }},
}

// inEpoch are refused though a LockAll epoch is open.
var inEpoch = []refusal{
	{"no such rank", func(s *script, win *window.Window[float64]) error { return win.Put(some, s.World.Size(), 0) }, window.ErrRank, []string{"Put of 3 elements", "of rank 2", "allowed are 0 to 1"}},
	{"negative rank", func(s *script, win *window.Window[float64]) error { return win.Get(make([]float64, 3), -1, 0) }, window.ErrRank, []string{"Get", "rank -1", "allowed are 0 to 1"}},
	{"one past the end", func(s *script, win *window.Window[float64]) error { return win.Put(some, 1, refusalCount-2) }, window.ErrRange, []string{"displacement 18", "it has 20 elements"}},
	{"far past the end", func(s *script, win *window.Window[float64]) error { return win.Get(make([]float64, 3), 1, math.MaxInt) }, window.ErrRange, []string{fmt.Sprint(math.MaxInt), "it has 20 elements"}},
	{"overflowing bytes", func(s *script, win *window.Window[float64]) error { return win.Put(some, 1, math.MaxInt/8+1) }, window.ErrRange, []string{"it has 20 elements"}},
	{"negative displacement", func(s *script, win *window.Window[float64]) error { return win.Put(some, 1, -1) }, window.ErrArgument, []string{"displacement -1", "negative displacement"}},
	{"least displacement", func(s *script, win *window.Window[float64]) error {
		return win.Accumulate(window.Sum, some, 1, math.MinInt)
	}, window.ErrArgument, []string{"Accumulate", "negative displacement"}},
	{"too long", func(s *script, win *window.Window[float64]) error {
		return win.Accumulate(window.Sum, make([]float64, refusalCount+1), 1, 0)
	}, window.ErrRange, []string{"21 elements", "it has 20"}},
	{"request forms", func(s *script, win *window.Window[float64]) error { _, err := win.RPut(some, 1, 18); return err }, window.ErrRange, []string{"displacement 18"}},
	{"request of a get", func(s *script, win *window.Window[float64]) error {
		_, err := win.RGet(make([]float64, 1), 1, 20)
		return err
	}, window.ErrRange, []string{"displacement 20"}},
	{"operation of another type", func(s *script, win *window.Window[float64]) error { return win.Accumulate(window.And, some, 1, 0) }, reduce.ErrUnsupported, []string{"and", "float64", "allowed are Sum"}},
	{"no such operation", func(s *script, win *window.Window[float64]) error {
		var old float64
		return win.FetchAndOp(window.Op(77), 1, &old, 1, 0)
	}, reduce.ErrUnsupported, []string{"operation 77", "allowed are Sum, Product, Min, Max, Replace and NoOp"}},
	{"no result", func(s *script, win *window.Window[float64]) error {
		return win.FetchAndOp(window.Sum, 1, nil, 1, 0)
	}, window.ErrArgument, []string{"FetchAndOp", "nil result"}},
	{"no result of a swap", func(s *script, win *window.Window[float64]) error { return win.CompareAndSwap(1, 2, nil, 1, 0) }, window.ErrArgument, []string{"CompareAndSwap", "nil result"}},
	{"swap past the end", func(s *script, win *window.Window[float64]) error {
		var old float64
		return win.CompareAndSwap(0, 1, &old, 1, 20)
	}, window.ErrRange, []string{"displacement 20"}},
	{"results of another length", func(s *script, win *window.Window[float64]) error {
		return win.GetAccumulate(window.Sum, some, make([]float64, 2), 1, 0)
	}, window.ErrArgument, []string{"origin has 3 elements, result 2"}},
	{"overlapping strides", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(make([]float64, 6), window.Contiguous(6), 1, 0, window.Strided(3, 2, 1))
	}, window.ErrOverlap, []string{"PutLayout", "overlapping layout"}},
	{"overlapping blocks", func(s *script, win *window.Window[float64]) error {
		return win.GetLayout(make([]float64, 6), window.Indexed(window.Block{Offset: 3, Length: 3}, window.Block{Offset: 0, Length: 4}), 1, 0, window.Contiguous(7))
	}, window.ErrOverlap, []string{"GetLayout"}},
	{"layouts that differ", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(make([]float64, 6), window.Contiguous(6), 1, 0, window.Contiguous(5))
	}, window.ErrArgument, []string{"the buffer's layout has 6 elements, the target's 5"}},
	{"a buffer too short for its layout", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(make([]float64, 6), window.Strided(2, 2, 5), 1, 0, window.Contiguous(4))
	}, window.ErrArgument, []string{"needs a buffer of 7 elements, it has 6"}},
	{"a layout past the end", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(make([]float64, 4), window.Contiguous(4), 1, 4, window.Strided(2, 2, 15))
	}, window.ErrRange, []string{"it has 20 elements"}},
	{"a layout that overflows", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(make([]float64, 4), window.Contiguous(4), 1, 0, window.Strided(3, 1, math.MaxInt))
	}, window.ErrArgument, []string{"overflows"}},
	{"a negative layout", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(make([]float64, 4), window.Strided(-1, 2, 3), 1, 0, window.Contiguous(4))
	}, window.ErrArgument, []string{"Strided(-1, 2, 3)", "negative"}},
	{"no such notification slot", func(s *script, win *window.Window[float64]) error { return win.PutNotify(some, 1, 0, 16) }, window.ErrArgument, []string{"notification slot 16, the window has 16"}},
	{"waiting for no such slot", func(s *script, win *window.Window[float64]) error { return win.WaitNotify(s.Ctx, -1, 1) }, window.ErrArgument, []string{"slot -1"}},
	{"nested locks", func(s *script, win *window.Window[float64]) error { return win.Lock(s.Ctx, window.Shared, 1) }, epoch.ErrEpochOpen, []string{"Lock", "LockAll"}},
	{"fence in a lock", func(s *script, win *window.Window[float64]) error { return win.Fence(s.Ctx) }, epoch.ErrEpochOpen, []string{"Fence", "UnlockAll"}},
	{"start in a lock", func(s *script, win *window.Window[float64]) error {
		return win.Start(s.Ctx, groupOf(s, win, 1))
	}, epoch.ErrEpochOpen, []string{"Start"}},
	{"complete without start", func(s *script, win *window.Window[float64]) error { return win.Complete(s.Ctx) }, epoch.ErrNotStarted, []string{"Complete"}},
	{"wait without post", func(s *script, win *window.Window[float64]) error { return win.Wait(s.Ctx) }, epoch.ErrNotPosted, []string{"Wait"}},
	{"flush of no rank", func(s *script, win *window.Window[float64]) error { return win.Flush(s.Ctx, 5) }, window.ErrRank, []string{"Flush", "5", "allowed are 0 to 1"}},
	{"closing in an epoch", func(s *script, win *window.Window[float64]) error { return win.Close() }, epoch.ErrEpochOpen, []string{"Close", "UnlockAll"}},
}

// outside are refused because no epoch is open.
var outside = []refusal{
	{"put", func(s *script, win *window.Window[float64]) error { return win.Put(some, 1, 0) }, epoch.ErrNoEpoch, []string{"Put", "rank 1"}},
	{"get", func(s *script, win *window.Window[float64]) error { return win.Get(make([]float64, 1), 0, 0) }, epoch.ErrNoEpoch, []string{"Get"}},
	{"accumulate", func(s *script, win *window.Window[float64]) error { return win.Accumulate(window.Sum, some, 1, 0) }, epoch.ErrNoEpoch, []string{"Accumulate"}},
	{"fetch", func(s *script, win *window.Window[float64]) error {
		var old float64
		return win.FetchAndOp(window.Sum, 1, &old, 1, 0)
	}, epoch.ErrNoEpoch, []string{"FetchAndOp"}},
	{"layout", func(s *script, win *window.Window[float64]) error {
		return win.PutLayout(some, window.Contiguous(3), 1, 0, window.Contiguous(3))
	}, epoch.ErrNoEpoch, []string{"PutLayout"}},
	{"notification", func(s *script, win *window.Window[float64]) error { return win.PutNotify(some, 1, 0, 0) }, epoch.ErrNoEpoch, []string{"PutNotify"}},
	{"flush", func(s *script, win *window.Window[float64]) error { return win.Flush(s.Ctx, 1) }, epoch.ErrNotLocked, []string{"Flush"}},
	{"flush with a request", func(s *script, win *window.Window[float64]) error { _, err := win.RFlush(1); return err }, epoch.ErrNotLocked, []string{"RFlush of rank 1"}},
	{"flush of no rank", func(s *script, win *window.Window[float64]) error { _, err := win.RFlush(2); return err }, window.ErrRank, []string{"RFlush", "allowed are 0 to 1"}},
	{"unlock", func(s *script, win *window.Window[float64]) error { return win.Unlock(s.Ctx, 1) }, epoch.ErrNotLocked, []string{"Unlock"}},
	{"unlock all", func(s *script, win *window.Window[float64]) error { return win.UnlockAll(s.Ctx) }, epoch.ErrNotLocked, []string{"UnlockAll"}},
	{"lock of no rank", func(s *script, win *window.Window[float64]) error { return win.Lock(s.Ctx, window.Shared, 2) }, window.ErrRank, []string{"2, allowed are 0 to 1"}},
	{"no such kind of lock", func(s *script, win *window.Window[float64]) error { return win.Lock(s.Ctx, window.LockKind(9), 1) }, epoch.ErrLockKind, []string{"LockKind(9)"}},
	{"no such assertion", func(s *script, win *window.Window[float64]) error { return win.Fence(s.Ctx, window.Assert(64)) }, epoch.ErrAssert, []string{"0x40", "NoPrecede"}},
	{"a group twice", func(s *script, win *window.Window[float64]) error { _, err := win.Group(1, 1); return err }, epoch.ErrGroup, []string{"1"}},
	{"a group of no rank", func(s *script, win *window.Window[float64]) error { _, err := win.Group(0, 7); return err }, epoch.ErrGroup, []string{"7"}},
}

func (r *refusal) check(s *script, when string, win *window.Window[float64], want error) {
	err := r.call(s, win)
	s.Check(errors.Is(err, want), "%s, %s: error is %v, want %v", when, r.name, err, want)
	if want != r.want {
		return
	}
	for _, says := range r.says {
		s.Check(strings.Contains(err.Error(), says), "%s, %s: %q does not say %q", when, r.name, err, says)
	}
}

var refusals = registerShared("refusals", []int{2}, func(s *script) {
	win := allocate[float64](s, refusalCount)
	for i := range win.Local() {
		win.Local()[i] = float64(i)
	}
	s.OK(s.World.Barrier(s.Ctx))
	untouched := func() {
		s.OK(s.World.Barrier(s.Ctx))
		for i, v := range win.Local() {
			s.Check(v == float64(i), "element %d became %v", i, v)
		}
		s.OK(s.World.Barrier(s.Ctx))
	}
	for i := range outside {
		outside[i].check(s, "outside an epoch", win, outside[i].want)
	}
	untouched()
	s.Fails(win.LockAll(s.Ctx, window.NoPut), epoch.ErrAssert)
	s.OK(win.LockAll(s.Ctx))
	for i := range inEpoch {
		inEpoch[i].check(s, "in LockAll", win, inEpoch[i].want)
	}
	for _, w := range withoutContext {
		err := w.call(win)
		s.Check(errors.Is(err, window.ErrArgument) && strings.Contains(err.Error(), w.name), "%s without a context: error is %v", w.name, err)
	}
	_, err := window.Allocate[int8](s.Ctx, nil, 1)
	s.Fails(err, window.ErrArgument)
	// The epoch has survived all of it.
	s.OK(win.Put([]float64{float64(s.World.Rank())}, s.World.Rank(), s.World.Rank()))
	s.OK(win.UnlockAll(s.Ctx))
	untouched()
	s.OK(win.Close())
	for i := range outside {
		switch outside[i].want {
		case window.ErrRank, epoch.ErrGroup:
		default:
			outside[i].check(s, "after Close", win, epoch.ErrClosed)
		}
	}
	s.Fails(win.Close(), epoch.ErrClosed)
})

// TestRefusals makes every illegal call on two ranks.
func TestRefusals(t *testing.T) {
	busy.Acquire(t)
	runShared(t, refusals)
}

// The error of an operation without an epoch says once what the operation is, and what it lacks.
func TestOperationWithoutEpoch(t *testing.T) {
	err := world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[float64](s, 2)
		err := win.Put(some[:1], 0, 1)
		s.Fails(err, epoch.ErrNoEpoch)
		s.Check(err.Error() == "window: Put of 1 element at displacement 1 of rank 0: no epoch is open; open one by Fence, by Start with a group that has the target, or by Lock or LockAll", "error is %v", err)
		s.OK(win.Close())
	}))
	if err != nil {
		t.Error(err)
	}
}

// A disagreement is a collective call that cannot succeed on every rank.
type disagreement struct {
	name string
	call func(s *script) error
	want error
	says []string
}

func made[T window.Element](_ *window.Window[T], err error) error { return err }

var disagreements = []disagreement{
	{"element types", func(s *script) error {
		if s.World.Rank() == 2 {
			return made(window.Allocate[float32](s.Ctx, s.World, 10))
		}
		return made(window.Allocate[int32](s.Ctx, s.World, 10))
	}, window.ErrMismatch, []string{"rank 2 passed element type float32, rank 0 passed int32"}},
	{"element types that another's part does not fit", func(s *script) error {
		if s.World.Rank() == 0 {
			return made(window.Allocate[int32](s.Ctx, s.World, 1))
		}
		return made(window.Allocate[int64](s.Ctx, s.World, 1))
	}, window.ErrMismatch, []string{"rank 1 passed element type int64, rank 0 passed int32"}},
	{"options", func(s *script) error {
		if s.World.Rank() == 1 {
			return made(window.Allocate[int32](s.Ctx, s.World, 10, window.SameOp()))
		}
		return made(window.Allocate[int32](s.Ctx, s.World, 10))
	}, window.ErrMismatch, []string{"rank 1 passed options SameOp, rank 0 passed none"}},
	{"notification slots", func(s *script) error {
		return made(window.Allocate[int32](s.Ctx, s.World, 10, window.Notifications(3+s.World.Rank()/2)))
	}, window.ErrMismatch, []string{"rank 2 passed Notifications 4, rank 0 passed 3"}},
	{"calls", func(s *script) error {
		if s.World.Rank() == 1 {
			return made(window.Create(s.Ctx, s.World, make([]int32, 10)))
		}
		return made(window.Allocate[int32](s.Ctx, s.World, 10))
	}, window.ErrMismatch, []string{"rank 1 called Create, rank 0 called Allocate"}},
	{"a negative count on one rank", func(s *script) error {
		return made(window.Allocate[int32](s.Ctx, s.World, 1-s.World.Rank()))
	}, nil, []string{"rank 2", "count -1", "must not be negative"}},
	{"more than an address holds", func(s *script) error {
		return made(window.Allocate[int64](s.Ctx, s.World, math.MaxInt/4))
	}, nil, []string{fmt.Sprint(math.MaxInt / 4), "more than an address holds"}},
	{"more than the machine has", func(s *script) error {
		count := 10
		if s.World.Rank() == 1 {
			count = 1 << 45
		}
		return made(window.Allocate[int64](s.Ctx, s.World, count))
	}, nil, []string{"rank 1", "35184372088832 elements of int64"}},
	{"too many notification slots", func(s *script) error {
		return made(window.Allocate[int64](s.Ctx, s.World, 1, window.Notifications(1<<16+s.World.Rank()%2)))
	}, nil, []string{"rank 1", "Notifications(65537)", "allowed are 0 to 65536"}},
}

func init() {
	for _, d := range disagreements {
		registerShared("disagreement on "+d.name, []int{3}, func(s *script) {
			before := allocate[int32](s, 4)
			err := d.call(s)
			s.Check(err != nil, "all is well")
			if d.want != nil {
				s.Fails(err, d.want)
			} else {
				var create *window.CreateError
				s.Check(errors.As(err, &create), "error is %T %v, want a *window.CreateError", err, err)
			}
			for _, says := range d.says {
				s.Check(strings.Contains(err.Error(), says), "%q does not say %q", err, says)
			}
			// The ranks are in step: the next window can be made.
			s.OK(allocate[int32](s, 4).Close())
			s.OK(before.Close())
		})
	}
}

// TestDisagreements has ranks pass collective calls what cannot be, and looks for
// the same error on all.
func TestDisagreements(t *testing.T) {
	busy.Acquire(t)
	for _, d := range disagreements {
		t.Run(d.name, func(t *testing.T) { runShared(t, "disagreement on "+d.name) })
	}
}

var closedWorld = register("closed world", func(s *script) {
	win := allocate[int64](s, 4)
	s.OK(win.Close())
	s.OK(s.World.Close())
	_, err := window.Allocate[int64](s.Ctx, s.World, 4)
	s.Fails(err, world.ErrClosed)
})

func TestClosedWorld(t *testing.T) { jobtest.Run(t, 2, closedWorld) }
