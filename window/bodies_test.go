package window_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// busy is for tests that compute, and may do so beside those that wait: they share nothing with other tests.
var busy = jobtest.NewLimit(2)

func TestMain(m *testing.M) {
	jobtest.SideBySide(256)
	jobtest.Main(m)
}

// runInSome runs a body in two of the forms in a plain run, and in more where the tests are to try more. Which ones is the
// turn of the body and the seed.
func runInSome(t *testing.T, turn int, name string, n int) {
	forms := jobtest.Forms(n)
	for _, i := range testsize.Turns(turn, len(forms), 2) {
		t.Run(forms[i].Name, func(t *testing.T) { forms[i].Run(t, n, name) })
	}
}

// A script is a body's checks, with what only tests of windows check.
type script struct{ jobtest.Script }

func equal[T comparable](s *script, what string, got, want []T) {
	s.Check(slices.Equal(got, want), "%s is %v, want %v", what, got, want)
}

// equalElements is equal for many elements. Its error names the first that differs.
func equalElements[T comparable](s *script, what string, got, want []T) {
	s.Check(len(got) == len(want), "%s has %d elements, want %d", what, len(got), len(want))
	for i := range got {
		if got[i] != want[i] {
			s.Check(false, "element %d of %d of %s is %v, want %v", i, len(got), what, got[i], want[i])
		}
	}
}

// register makes a body known to every process of the tests, under a name.
func register(name string, body func(s *script)) string {
	scripts[name] = body
	return jobtest.Register(name, scripted(body))
}

// scripts are the bodies that register has made known.
var scripts = map[string]func(s *script){}

func scripted(body func(s *script)) jobtest.Body {
	return jobtest.Scripted(func(s *jobtest.Script) { body(&script{*s}) })
}

// take has a lock itself, which Lock may put off: see Lock. If it fails no epoch is open.
func take(ctx context.Context, win *window.Window[int64], kind window.LockKind, target int) error {
	if err := win.Lock(ctx, kind, target); err != nil {
		return err
	}
	err := win.Flush(ctx, target)
	if err != nil {
		var lost *world.PeerError
		if e := win.Unlock(context.WithoutCancel(ctx), target); e != nil && !errors.As(e, &lost) {
			return e
		}
	}
	return err
}

func allocate[T window.Element](s *script, count int, options ...window.Option) *window.Window[T] {
	win, err := window.Allocate[T](s.Ctx, s.World, count, options...)
	s.OK(err)
	return win
}

// pattern is what rank from puts into rank to's window.
func pattern(from, to, n int) []int64 {
	p := make([]int64, n)
	for i := range p {
		p[i] = int64(from)*1_000_000 + int64(to)*1000 + int64(i)
	}
	return p
}

// After Fence every put of the epoch is at its target, and the next epoch is open.
var fencePuts = registerShared("fence puts", []int{1, 2, 3, 5}, func(s *script) {
	const block = 7
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, n*block)
	s.OK(win.Fence(s.Ctx, window.NoPrecede))
	for round := range 20 {
		for to := range n {
			s.OK(win.Put(pattern(me+round, to, block), to, me*block))
		}
		s.OK(win.Fence(s.Ctx))
		for from := range n {
			equal(s, fmt.Sprintf("block of rank %d", from), win.Local()[from*block:(from+1)*block], pattern(from+round, me, block))
		}
		s.OK(win.Fence(s.Ctx))
		got := make([]int64, block)
		s.OK(win.Get(got, (me+1)%n, me*block))
		s.OK(win.Fence(s.Ctx))
		equal(s, "what I put", got, pattern(me+round, (me+1)%n, block))
	}
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.OK(win.Close())
})

// After Wait everything of the exposure is in window memory; origins and targets
// are a ring, so that every rank is both.
var postedPuts = registerShared("start complete post wait", []int{1, 2, 3, 5}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, 3*n)
	next, before := (me+1)%n, (me+n-1)%n
	to, err := win.Group(next)
	s.OK(err)
	from, err := win.Group(before)
	s.OK(err)
	for round := range 50 {
		s.OK(win.Post(s.Ctx, from))
		s.OK(win.Start(s.Ctx, to))
		s.OK(win.Put(pattern(me+round, next, 3), next, 3*me))
		s.OK(win.Complete(s.Ctx))
		if round%2 == 0 {
			s.OK(win.Wait(s.Ctx))
		} else {
			for done := false; !done; {
				done, err = win.Test()
				s.OK(err)
				// A loop that does not yield has the other ranks of its process wait until it is preempted: one is enough.
				if round > 1 {
					runtime.Gosched()
				}
			}
		}
		equal(s, "exposed block", win.Local()[3*before:3*before+3], pattern(before+round, me, 3))
	}
	s.OK(win.Close())
})

// Start names several targets and Post several origins.
var postedGroups = registerShared("groups", []int{3, 4}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, n)
	var others []int
	for rank := range n {
		if rank != me {
			others = append(others, rank)
		}
	}
	group, err := win.Group(others...)
	s.OK(err)
	for round := range 20 {
		s.OK(win.Post(s.Ctx, group))
		s.OK(win.Start(s.Ctx, group))
		for _, rank := range others {
			s.OK(win.Put([]int64{int64(round*100 + me)}, rank, me))
		}
		s.OK(win.Complete(s.Ctx))
		s.OK(win.Wait(s.Ctx))
		for _, rank := range others {
			s.Check(win.Local()[rank] == int64(round*100+rank), "round %d: rank %d's element is %d", round, rank, win.Local()[rank])
		}
	}
	s.OK(win.Close())
})

// An exclusive lock excludes everyone: plain reads and writes under it lose nothing.
var exclusiveCounter = registerShared("exclusive lock", []int{1, 2, 3, 5}, func(s *script) {
	const rounds = 200
	n := s.World.Size()
	win := allocate[int64](s, 1)
	for round := range rounds {
		target := round % n
		s.OK(win.Lock(s.Ctx, window.Exclusive, target))
		var v [1]int64
		s.OK(win.Get(v[:], target, 0))
		s.OK(win.Flush(s.Ctx, target))
		v[0]++
		s.OK(win.Put(v[:], target, 0))
		s.OK(win.Unlock(s.Ctx, target))
	}
	s.OK(s.World.Barrier(s.Ctx))
	want := int64(0)
	for round := range rounds {
		if round%n == s.World.Rank() {
			want += int64(n)
		}
	}
	s.Check(win.Local()[0] == want, "counter is %d, want %d", win.Local()[0], want)
	s.OK(win.Close())
})

// Shared holders exclude an exclusive one: while one is held, two elements that
// exclusive holders always change together are seen equal.
var sharedReaders = registerShared("shared lock", []int{1, 2, 3, 5}, func(s *script) {
	win := allocate[int64](s, 2)
	for round := range 300 {
		target := round % s.World.Size()
		if (round+s.World.Rank())%3 == 0 {
			s.OK(win.Lock(s.Ctx, window.Exclusive, target))
			v := make([]int64, 2)
			s.OK(win.Get(v, target, 0))
			s.OK(win.Flush(s.Ctx, target))
			v[0]++
			s.OK(win.Put(v[:1], target, 0))
			s.OK(win.Put(v[:1], target, 1))
			s.OK(win.Unlock(s.Ctx, target))
			continue
		}
		s.OK(win.Lock(s.Ctx, window.Shared, target))
		v := make([]int64, 2)
		s.OK(win.Get(v, target, 0))
		s.OK(win.Flush(s.Ctx, target))
		s.OK(win.Unlock(s.Ctx, target))
		s.Check(v[0] == v[1], "under a shared lock the pair is %v", v)
	}
	s.OK(win.Close())
})

// Accumulates of all ranks to the same elements lose no update, one element or
// many at a time, whatever their type.
var accumulateSums = registerShared("accumulate", []int{1, 2, 3, 5}, func(s *script) {
	sums[int8](s)
	sums[uint16](s)
	sums[int32](s)
	sums[uint64](s)
	sums[float32](s)
	sums[float64](s)
	sums[complex64](s)
	sums[complex128](s)
	sums[float64](s, window.Unordered())
	sums[uint64](s, window.SameOp())
})

func sums[T window.Element](s *script, options ...window.Option) {
	const count, rounds = 300, 10
	win := allocate[T](s, count, options...)
	ones := make([]T, count)
	for i := range ones {
		ones[i] = 1
	}
	s.OK(win.LockAll(s.Ctx))
	for target := range s.World.Size() {
		for round := range rounds {
			s.OK(win.Accumulate(window.Sum, ones, target, 0))
			s.OK(win.Accumulate(window.Sum, ones[:1], target, round))
			var old T
			s.OK(win.FetchAndOp(window.Sum, 1, &old, target, round))
		}
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	for i, got := range win.Local() {
		want := T(0)
		for range s.World.Size() * rounds {
			want += 1
		}
		if i < rounds {
			for range 2 * s.World.Size() {
				want += 1
			}
		}
		s.Check(got == want, "element %d of %T is %v, want %v", i, got, got, want)
	}
	s.OK(win.Close())
}

// With SingleElement the accumulate family is atomic instructions.
var singleElement = registerShared("single element", []int{1, 2, 3, 5}, func(s *script) {
	win := allocate[int32](s, 5, window.SingleElement())
	bits := allocate[uint8](s, 3, window.SingleElement())
	wide := allocate[complex128](s, 1, window.SingleElement())
	for _, lockAll := range []func(context.Context, ...window.Assert) error{win.LockAll, bits.LockAll, wide.LockAll} {
		s.OK(lockAll(s.Ctx))
	}
	n, me := s.World.Size(), s.World.Rank()
	for range 100 {
		for target := range n {
			s.OK(win.Accumulate(window.Sum, []int32{1}, target, 2))
			s.OK(win.Accumulate(window.Max, []int32{int32(me)}, target, 3))
			s.OK(wide.Accumulate(window.Sum, []complex128{1 + 1i}, target, 0))
			var old uint8
			s.OK(bits.FetchAndOp(window.Xor, 1<<me, &old, target, 1))
		}
	}
	s.Fails(win.Accumulate(window.Sum, []int32{1, 2}, 0, 0), window.ErrPromise)
	read := make([]int32, 2)
	s.OK(errors.Join(win.GetAccumulate(window.NoOp, nil, read, me, 3), win.Flush(s.Ctx, me)))
	s.Check(read[0] >= int32(me) && read[1] == 0, "read %v", read)
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(bits.UnlockAll(s.Ctx))
	s.OK(wide.UnlockAll(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	equal(s, "sums", win.Local(), []int32{0, 0, int32(100 * n), int32(n - 1), 0})
	equal(s, "bits", bits.Local(), []uint8{0, 0, 0})
	equal(s, "wide", wide.Local(), []complex128{complex(float64(100*n), float64(100*n))})
	s.OK(win.Close())
	s.OK(bits.Close())
	s.OK(wide.Close())
})

// FetchAndOp gives each caller its own ticket; CompareAndSwap lets one win.
var tickets = registerShared("fetch and compare", []int{1, 2, 3, 5}, func(s *script) {
	const each = 100
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[uint32](s, 2+n*each)
	s.OK(win.LockAll(s.Ctx))
	wins := uint32(0)
	for i := range each {
		var ticket, was uint32
		s.OK(win.FetchAndOp(window.Sum, 1, &ticket, 0, 0))
		s.OK(win.FlushLocal(s.Ctx, 0))
		s.OK(win.Put([]uint32{uint32(me) + 1}, 0, 2+int(ticket)))
		s.OK(win.CompareAndSwap(uint32(i), uint32(i)+1, &was, 0, 1))
		s.OK(win.Flush(s.Ctx, 0))
		if was == uint32(i) {
			wins++
		}
		s.OK(s.World.Barrier(s.Ctx))
	}
	s.OK(win.UnlockAll(s.Ctx))
	total := make([]uint32, 1)
	s.OK(world.AllReduce(s.Ctx, s.World, []uint32{wins}, total, func(a, b uint32) uint32 { return a + b }))
	s.Check(total[0] == each, "%d swaps won, want %d", total[0], each)
	if me == 0 {
		count := make(map[uint32]int)
		for _, owner := range win.Local()[2:] {
			count[owner]++
		}
		for rank := range n {
			s.Check(count[uint32(rank)+1] == each, "rank %d has %d tickets, want %d", rank, count[uint32(rank)+1], each)
		}
	}
	s.OK(win.Close())
})

// GetAccumulate gives what was there before, Replace writes, NoOp only reads.
var getAccumulate = registerShared("get accumulate", []int{1, 2, 3, 5}, func(s *script) {
	win := allocate[float64](s, 100)
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.Fence(s.Ctx))
	values, old := make([]float64, 100), make([]float64, 100)
	for i := range values {
		values[i] = float64(i) - 50
	}
	s.OK(win.GetAccumulate(window.Replace, values, old, next, 0))
	s.OK(win.Fence(s.Ctx))
	equal(s, "fresh window", old, make([]float64, 100))
	s.OK(win.GetAccumulate(window.NoOp, nil, old, next, 0))
	s.OK(win.Fence(s.Ctx))
	equal(s, "replaced", old, values)
	s.OK(win.GetAccumulate(window.Max, make([]float64, 50), old[:50], next, 25))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	equal(s, "before max", old[:50], values[25:75])
	for i, got := range win.Local() {
		want := float64(i) - 50
		if i >= 25 && i < 75 {
			want = math.Max(want, 0)
		}
		s.Check(got == want, "element %d is %v, want %v", i, got, want)
	}
	s.OK(win.Close())
})

// Operations with layouts touch the elements of the layouts and no others.
var layouts = registerShared("layouts", []int{1, 2, 3, 5}, func(s *script) {
	win := allocate[int32](s, 40)
	next := (s.World.Rank() + 1) % s.World.Size()
	s.OK(win.Fence(s.Ctx))
	origin := []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	s.OK(win.PutLayout(origin, window.Contiguous(12), next, 2, window.Strided(4, 3, 8)))
	s.OK(win.Fence(s.Ctx))
	want := make([]int32, 40)
	for i := range origin {
		want[2+i/3*8+i%3] = int32(i)
	}
	equal(s, "strided", win.Local(), want)
	s.OK(win.Fence(s.Ctx))
	got := make([]int32, 8)
	s.OK(win.GetLayout(got, window.Strided(4, 1, 2), next, 0, window.Indexed(window.Block{26, 2}, window.Block{4, 0}, window.Block{10, 2})))
	s.OK(win.Fence(s.Ctx))
	equal(s, "gathered", got, []int32{9, 0, 10, 0, 3, 0, 4, 0})
	s.OK(win.AccumulateLayout(window.Sum, []int32{5, 6}, window.Contiguous(2), next, 39, window.Indexed(window.Block{0, 1}, window.Block{0, 1})))
	s.Fails(win.PutLayout(origin, window.Contiguous(4), next, 0, window.Strided(2, 2, 1)), window.ErrOverlap)
	s.Fails(win.GetLayout(got, window.Indexed(window.Block{0, 2}, window.Block{1, 2}), next, 0, window.Contiguous(4)), window.ErrOverlap)
	s.Fails(win.PutLayout(origin, window.Contiguous(13), next, 0, window.Contiguous(13)), window.ErrArgument)
	s.Fails(win.PutLayout(origin, window.Contiguous(3), next, 0, window.Contiguous(4)), window.ErrArgument)
	s.Fails(win.PutLayout(origin, window.Contiguous(4), next, 37, window.Contiguous(4)), window.ErrRange)
	s.Fails(win.PutLayout(origin, window.Strided(2, math.MaxInt, 1), next, 0, window.Contiguous(1)), window.ErrArgument)
	s.Fails(win.PutLayout(origin, window.Strided(-1, 1, 1), next, 0, window.Contiguous(1)), window.ErrArgument)
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.Check(win.Local()[39] == 11, "accumulated twice: %d", win.Local()[39])
	s.OK(win.Close())
})

// WaitNotify returns when the bytes of the puts that it counts are there.
var notifications = registerShared("notifications", []int{1, 2, 3, 5}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, n, window.Notifications(3))
	s.OK(win.LockAll(s.Ctx))
	for round := range 100 {
		for target := range n {
			s.OK(win.PutNotify([]int64{int64(round)}, target, me, 2))
		}
		s.OK(win.WaitNotify(s.Ctx, 2, uint64(n)))
		for from, got := range win.Local() {
			s.Check(got >= int64(round), "after round %d rank %d's element is %d", round, from, got)
		}
		s.OK(s.World.Barrier(s.Ctx))
	}
	took, err := win.TestNotify(2, 1)
	s.OK(err)
	s.Check(!took, "a notification more than was sent")
	s.Fails(win.PutNotify(nil, 0, 0, 3), window.ErrArgument)
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
})

// A view is the same memory and the same epochs, displacements in its own elements.
var views = registerShared("views", []int{1, 2, 3, 5}, func(s *script) {
	win := allocate[byte](s, 64)
	words, err := window.View[uint64](win)
	s.OK(err)
	again, err := window.View[uint64](win)
	s.OK(err)
	back, err := window.View[byte](words)
	s.OK(err)
	s.Check(again == words && back == win, "views of one type are several")
	next := (s.World.Rank() + 1) % s.World.Size()
	s.Fails(words.Put([]uint64{1}, next, 0), epoch.ErrNoEpoch)
	s.OK(win.Fence(s.Ctx))
	s.OK(words.Put([]uint64{0x0807060504030201}, next, 3))
	var old uint64
	s.OK(words.FetchAndOp(window.Sum, 5, &old, next, 0))
	s.OK(words.Fence(s.Ctx))
	equal(s, "bytes", win.Local()[24:32], []byte{1, 2, 3, 4, 5, 6, 7, 8})
	s.OK(win.Fence(s.Ctx))
	s.Check(words.Len(next) == 8 && win.Len(next) == 64, "lengths %d and %d", words.Len(next), win.Len(next))
	s.Fails(words.Put([]uint64{1}, next, 8), window.ErrRange)
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	odd := allocate[byte](s, 13)
	_, err = window.View[uint32](odd)
	s.Fails(err, window.ErrAlignment)
	s.OK(odd.Close())
	askew, err := window.Create(s.Ctx, s.World, bytesAskew(16))
	s.OK(err)
	_, err = window.View[uint64](askew)
	s.Fails(err, window.ErrAlignment)
	s.OK(askew.Close())
	s.OK(win.Close())
	_, err = window.View[uint64](win)
	s.Fails(err, epoch.ErrClosed)
})

// bytesAskew is n bytes from an odd address on.
func bytesAskew(n int) []byte { return make([]byte, n+9)[9:] }

// A window over the program's own memory serves every operation.
var created = registerShared("create", []int{1, 2, 3, 5}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	memory := make([]int64, 200)
	for i := range memory {
		memory[i] = int64(me)
	}
	win, err := window.Create(s.Ctx, s.World, memory)
	s.OK(err)
	next := (me + 1) % n
	s.OK(win.LockAll(s.Ctx))
	got := make([]int64, 2)
	s.OK(win.Get(got, next, 50))
	s.OK(win.Flush(s.Ctx, next))
	equal(s, "initial", got, []int64{int64(next), int64(next)})
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Put([]int64{7, 8}, next, 198))
	for target := range n {
		for range 50 {
			s.OK(win.Accumulate(window.Sum, []int64{1, 1}, target, 0))
			var old int64
			s.OK(win.FetchAndOp(window.Sum, 1, &old, target, 1))
		}
	}
	var was int64
	s.OK(win.CompareAndSwap(int64(next), 99, &was, next, 100))
	s.OK(win.UnlockAll(s.Ctx))
	s.Check(was == int64(next), "swapped %d", was)
	s.OK(s.World.Barrier(s.Ctx))
	equal(s, "put", memory[198:], []int64{7, 8})
	s.Check(memory[0] == int64(me+50*n) && memory[1] == int64(me+100*n), "sums %v", memory[:2])
	s.Check(memory[100] == 99, "swapped to %d", memory[100])
	s.OK(win.Close())
})

// Windows of different sizes, some empty; zero-length operations are legal.
var empty = registerShared("empty", []int{1, 2, 3, 5}, func(s *script) {
	me := s.World.Rank()
	win := allocate[float32](s, me)
	s.OK(win.Fence(s.Ctx))
	for target := range s.World.Size() {
		s.Check(win.Len(target) == target, "rank %d has %d elements", target, win.Len(target))
		s.OK(win.Put(nil, target, target))
		s.OK(win.Get(nil, target, 0))
		s.OK(win.Accumulate(window.Sum, nil, target, target))
		s.OK(win.GetAccumulate(window.NoOp, nil, nil, target, 0))
		s.Fails(win.Put([]float32{1}, target, target), window.ErrRange)
	}
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.OK(win.Close())
	s.OK(allocate[int64](s, 0).Close())
})

// Several windows and several goroutines of a rank at once.
var goroutines = registerShared("goroutines", []int{1, 2, 3, 5}, func(s *script) {
	n := s.World.Size()
	a, b := allocate[int64](s, 10), allocate[int64](s, 10)
	s.OK(a.LockAll(s.Ctx))
	s.OK(b.Fence(s.Ctx))
	var all sync.WaitGroup
	var faults atomic.Pointer[error]
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				err := errors.Join(
					a.Accumulate(window.Sum, []int64{1, 2}, i%n, g),
					b.Accumulate(window.Sum, []int64{1}, i%n, 9),
					a.Flush(s.Ctx, i%n))
				if err != nil {
					faults.Store(&err)
				}
			}
		})
	}
	all.Wait()
	s.Check(faults.Load() == nil, "an operation failed: %v", faults.Load())
	s.OK(a.UnlockAll(s.Ctx))
	s.OK(b.Fence(s.Ctx, window.NoSucceed))
	s.OK(s.World.Barrier(s.Ctx))
	mine := int64(0)
	for i := range 200 {
		if i%n == s.World.Rank() {
			mine += int64(n)
		}
	}
	equal(s, "a", a.Local()[:6], []int64{mine, 3 * mine, 3 * mine, 3 * mine, 2 * mine, 0})
	s.Check(b.Local()[9] == 4*mine, "b is %d, want %d", b.Local()[9], 4*mine)
	s.OK(a.Close())
	s.OK(b.Close())
})

func TestSemantics(t *testing.T) {
	busy.Acquire(t)
	runShared(t, fencePuts, postedPuts, postedGroups, exclusiveCounter, sharedReaders, accumulateSums, singleElement, tickets,
		getAccumulate, layouts, notifications, views, created, empty, goroutines)
}
