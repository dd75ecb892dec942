package window_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world/worldtest"
)

// The oracle is a model of a window that carries out a program's operations one
// after the other. A program is drawn from a seed, the same on every rank, so
// that its outcome does not depend on the order of what may happen at once: in
// each phase an element is put to by one rank, or read by several, or combined
// with one commutative operation by several, or used by one rank in any way. After
// each phase every rank compares its whole part, and what it has read.

// A use is one operation of a program.
type use struct {
	call                 string
	op                   window.Op
	origin, target, from int
	values               []int64
	compare              int64
}

// A phase is operations under one kind of synchronization.
type phase struct {
	mode string
	uses []use
}

var modes = []string{"fence", "fences", "start", "exclusive", "shared", "lock all"}

type number interface {
	int64 | float64 | uint16
}

// opsOf are the commutative operations and the others of an element type.
func opsOf[T number]() (commutative, others []window.Op) {
	commutative = []window.Op{window.Sum, window.Min, window.Max}
	others = []window.Op{window.Product, window.Replace, window.NoOp}
	if half := 0.5; T(half) == 0 {
		commutative = append(commutative, window.And, window.Or, window.Xor)
	}
	return commutative, others
}

// draw makes a phase for ranks that expose count elements each.
func draw[T number](random *rand.Rand, ranks, count int) phase {
	p := phase{mode: modes[random.IntN(len(modes))]}
	commutative, others := opsOf[T]()
	values := func(n int) []int64 {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(random.IntN(7))
		}
		return v
	}
	for target := range ranks {
		for at := 0; at < count; {
			n := 1 + random.IntN(6)
			if random.IntN(8) == 0 {
				n = 100 + random.IntN(200)
			}
			n = min(n, count-at)
			some := random.Perm(ranks)[:1+random.IntN(ranks)]
			switch role := random.IntN(5); role {
			case 0:
				p.uses = append(p.uses, use{call: "Put", origin: some[0], target: target, from: at, values: values(n)})
			case 1:
				for _, origin := range some {
					p.uses = append(p.uses, use{call: "Get", origin: origin, target: target, from: at, values: values(n)})
				}
			case 2:
				op := commutative[random.IntN(len(commutative))]
				for _, origin := range some {
					p.uses = append(p.uses, use{call: "Accumulate", op: op, origin: origin, target: target, from: at, values: values(n)})
				}
			case 3:
				for range 1 + random.IntN(4) {
					u := use{op: append(commutative, others...)[random.IntN(len(commutative)+len(others))], origin: some[0], target: target, from: at}
					switch random.IntN(4) {
					case 0:
						u.call, u.values = "GetAccumulate", values(n)
					case 1:
						u.call, u.values = "FetchAndOp", values(1)
					case 2:
						u.call, u.values, u.compare = "CompareAndSwap", values(1), int64(random.IntN(7))
					default:
						u.call, u.values = "Accumulate", values(n)
					}
					p.uses = append(p.uses, u)
				}
			}
			at += n
		}
	}
	return p
}

// combine is what op makes of an element.
func combine[T number](op window.Op, was, with T) T {
	switch op {
	case window.Sum:
		return was + with
	case window.Product:
		return was * with
	case window.Min:
		return min(was, with)
	case window.Max:
		return max(was, with)
	case window.And:
		return T(int64(was) & int64(with))
	case window.Or:
		return T(int64(was) | int64(with))
	case window.Xor:
		return T(int64(was) ^ int64(with))
	case window.Replace:
		return with
	default:
		return was
	}
}

func as[T number](values []int64) []T {
	out := make([]T, len(values))
	for i, v := range values {
		out[i] = T(v)
	}
	return out
}

// apply carries out u on the model and gives what it reads.
func apply[T number](model [][]T, u *use) []T {
	part := model[u.target][u.from:]
	old := slices.Clone(part[:len(u.values)])
	for i, v := range as[T](u.values) {
		switch u.call {
		case "Put":
			part[i] = v
		case "CompareAndSwap":
			if part[i] == T(u.compare) {
				part[i] = v
			}
		case "Get":
		default:
			part[i] = combine(u.op, part[i], v)
		}
	}
	return old
}

// issue calls the operation u and gives where its result will be.
func issue[T number](s *script, win *window.Window[T], u *use) []T {
	values, result := as[T](u.values), make([]T, len(u.values))
	switch u.call {
	case "Put":
		s.ok(win.Put(values, u.target, u.from))
	case "Get":
		s.ok(win.Get(result, u.target, u.from))
	case "Accumulate":
		s.ok(win.Accumulate(u.op, values, u.target, u.from))
	case "GetAccumulate":
		s.ok(win.GetAccumulate(u.op, values, result, u.target, u.from))
	case "FetchAndOp":
		s.ok(win.FetchAndOp(u.op, values[0], &result[0], u.target, u.from))
	case "CompareAndSwap":
		s.ok(win.CompareAndSwap(T(u.compare), values[0], &result[0], u.target, u.from))
	}
	return result
}

// runPhase issues this rank's operations under the phase's synchronization.
func runPhase[T number](s *script, win *window.Window[T], p phase, do func(target int)) {
	everyone := func(yield func(target int)) {
		for target := range s.w.Size() {
			yield(target)
		}
	}
	switch p.mode {
	case "fence":
		s.ok(win.Fence(s.ctx, window.NoPrecede))
		everyone(do)
		s.ok(win.Fence(s.ctx, window.NoSucceed))
	case "fences":
		s.ok(win.Fence(s.ctx))
		everyone(do)
		s.ok(win.Fence(s.ctx))
		s.ok(win.Fence(s.ctx, window.NoSucceed, window.NoPrecede))
	case "start":
		var origins, targets []int
		for rank := range s.w.Size() {
			if slices.ContainsFunc(p.uses, func(u use) bool { return u.origin == s.w.Rank() && u.target == rank }) {
				targets = append(targets, rank)
			}
			if slices.ContainsFunc(p.uses, func(u use) bool { return u.target == s.w.Rank() && u.origin == rank }) {
				origins = append(origins, rank)
			}
		}
		from, err := win.Group(origins...)
		s.ok(err)
		to, err := win.Group(targets...)
		s.ok(err)
		s.ok(win.Post(s.ctx, from))
		s.ok(win.Start(s.ctx, to))
		everyone(do)
		s.ok(win.Complete(s.ctx))
		s.ok(win.Wait(s.ctx))
	case "exclusive", "shared":
		kind := window.Shared
		if p.mode == "exclusive" {
			kind = window.Exclusive
		}
		everyone(func(target int) {
			s.ok(win.Lock(s.ctx, kind, target))
			do(target)
			s.ok(win.Flush(s.ctx, target))
			s.ok(win.Unlock(s.ctx, target))
		})
	case "lock all":
		s.ok(win.LockAll(s.ctx))
		everyone(do)
		s.ok(win.FlushAll(s.ctx))
		s.ok(win.UnlockAll(s.ctx))
	}
}

// runProgram runs the program of a seed on the first count elements of windows of
// size, and compares it with the oracle.
func runProgram[T number](s *script, seed uint64, count, size int, options ...window.Option) {
	random := rand.New(rand.NewPCG(seed, 7))
	win := allocate[T](s, size, options...)
	model := make([][]T, s.w.Size())
	for rank := range model {
		model[rank] = make([]T, count)
	}
	for number := range 12 {
		p := draw[T](random, s.w.Size(), count)
		var want, got [][]T
		for i := range p.uses {
			if old := apply(model, &p.uses[i]); p.uses[i].origin == s.w.Rank() {
				want = append(want, old)
				got = append(got, nil)
			}
		}
		runPhase(s, win, p, func(target int) {
			mine := 0
			for i := range p.uses {
				u := &p.uses[i]
				if u.origin == s.w.Rank() {
					if u.target == target {
						got[mine] = issue(s, win, u)
					}
					mine++
				}
			}
		})
		s.ok(s.w.Barrier(s.ctx))
		s.ok(win.Sync())
		where := fmt.Sprintf("seed %d, phase %d (%s)", seed, number, p.mode)
		s.check(slices.Equal(win.Local()[:count], model[s.w.Rank()]), "%s: contents are\n%v, want\n%v", where, win.Local()[:count], model[s.w.Rank()])
		mine := 0
		for i := range p.uses {
			if u := &p.uses[i]; u.origin == s.w.Rank() {
				if u.call != "Put" && u.call != "Accumulate" {
					s.check(slices.Equal(got[mine], want[mine]), "%s: %s (%v) of rank %d at %d read %v, want %v", where, u.call, u.op, u.target, u.from, got[mine], want[mine])
				}
				mine++
			}
		}
		s.ok(s.w.Barrier(s.ctx))
	}
	s.ok(win.Close())
}

const programs = 12

var (
	integers = register("programs of int64", func(s *script) {
		for seed := range uint64(programs) {
			runProgram[int64](s, seed, 300, 300)
		}
	})
	floats = register("programs of float64", func(s *script) {
		for seed := range uint64(programs) {
			runProgram[float64](s, seed, 700, 700)
		}
	})
	// Accumulates of one element to windows this large are held back.
	large = register("programs of int64 in large windows", func(s *script) {
		for seed := range uint64(programs) {
			runProgram[int64](s, seed, 300, 1<<18)
		}
	})
	immediate = register("programs of int64 in large windows, immediate", func(s *script) {
		for seed := range uint64(programs) {
			runProgram[int64](s, seed, 300, 1<<18, window.Immediate())
		}
	})
	shorts = register("programs of uint16, unordered", func(s *script) {
		for seed := range uint64(programs) {
			runProgram[uint16](s, seed, 5000, 5000, window.Unordered())
		}
	})
	// Each way to arrange operations is left out, and all of them.
	arranged = register("programs of int64, arranged otherwise", func(s *script) {
		for seed := range uint64(programs) {
			for _, without := range []scheduler.Scheme{scheduler.All, scheduler.GetsFirst, scheduler.Interleave, scheduler.Pack, scheduler.Merge, scheduler.Early} {
				runProgram[int64](s, seed, 1500, 1500, window.Without(without))
			}
		}
	})
)

// TestOracle runs random programs, as goroutines and as processes.
func TestOracle(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		for _, name := range []string{integers, floats, large, immediate, shorts} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) { worldtest.Run(t, n, name) })
		}
	}
	t.Run("arranged otherwise", func(t *testing.T) { worldtest.Apart(t, 3, arranged); worldtest.TCP(t, 3, arranged) })
}
