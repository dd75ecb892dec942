package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// A dispute is a call that all ranks but the last make, and what the last makes of
// it. It is detected on every rank, and both values are named.
type dispute struct {
	name        string
	most, other func(s *script) error
	named       []string
}

func broadcast[T any](root, k int) func(s *script) error {
	return func(s *script) error { return world.Broadcast(s.Ctx, s.World, root, make([]T, k)) }
}

func allReduce(k int) func(s *script) error {
	return func(s *script) error {
		return world.AllReduceOp(s.Ctx, s.World, make([]uint64, k), make([]uint64, k), world.Sum)
	}
}

func barrier(s *script) error { return s.World.Barrier(s.Ctx) }

var disputes = []dispute{
	{"length", broadcast[int32](0, 3), broadcast[int32](0, 4), []string{"Broadcast", "3 elements", "has 4"}},
	{"length, of which one fits a note", broadcast[uint64](0, 6), broadcast[uint64](0, 7), []string{"6 elements", "has 7"}},
	{"length, of which the last's fits a note", allReduce(7), allReduce(6), []string{"AllReduceOp by Sum", "7 elements", "has 6"}},
	{"length by many letters", broadcast[int32](0, 3), broadcast[int32](0, 40_000), []string{"3 elements", "has 40000"}},
	{"type of the same size", broadcast[int64](0, 3), broadcast[float64](0, 3), []string{"elements of type int64", "of float64"}},
	{"element size", broadcast[int32](0, 4), broadcast[[2]int32](0, 2), []string{"int32", "of [2]int32"}},
	{"fields", broadcast[struct{ A, B int16 }](0, 1), broadcast[struct{ A uint32 }](0, 1), []string{"struct{int16;int16}", "struct{uint32}"}},
	{"root", broadcast[int32](0, 3), func(s *script) error { return broadcast[int32](s.n-1, 3)(s) }, []string{"Broadcast", "root 0"}},
	{
		"root of a reduction",
		func(s *script) error { return world.Reduce(s.Ctx, s.World, 0, []int{1}, []int{0}, add[int]) },
		func(s *script) error { return world.Reduce(s.Ctx, s.World, 1, []int{1}, []int{0}, add[int]) },
		[]string{"Reduce", "has root 0", "has 1"},
	},
	{
		"call",
		func(s *script) error { return world.AllGather(s.Ctx, s.World, make([]int32, 1), make([]int32, s.n)) },
		func(s *script) error { return world.AllToAll(s.Ctx, s.World, make([]int32, s.n), make([]int32, s.n)) },
		[]string{"calls AllGather", "AllToAll"},
	},
	{
		"opposite calls",
		func(s *script) error { return world.Gather(s.Ctx, s.World, 0, make([]int, 1), make([]int, s.n)) },
		func(s *script) error { return world.Scatter(s.Ctx, s.World, 0, make([]int, s.n), make([]int, 1)) },
		[]string{"calls Gather", "Scatter"},
	},
	{
		"reductions",
		func(s *script) error { return world.Reduce(s.Ctx, s.World, 0, []int{1}, []int{0}, add[int]) },
		func(s *script) error { return world.AllReduce(s.Ctx, s.World, []int{1}, []int{0}, add[int]) },
		[]string{"calls Reduce", "AllReduce"},
	},
	{"barrier of the last", broadcast[int](0, 1), barrier, []string{"calls Broadcast", "Barrier"}},
	{"barrier of the others", barrier, broadcast[int](0, 1), []string{"calls Barrier", "Broadcast"}},
	{"barrier and sender", barrier, func(s *script) error { return broadcast[int](s.n-1, 1)(s) }, []string{"calls Barrier", "Broadcast"}},
	{
		"one call more", barrier,
		func(s *script) error { return errors.Join(broadcast[int](s.n-1, 1)(s), barrier(s)) },
		[]string{"Barrier", "Broadcast"},
	},
}

func init() {
	for _, d := range disputes {
		register("dispute: "+d.name, func(s *script) {
			s.OK(s.World.Barrier(s.Ctx))
			call := d.most
			if s.me == s.n-1 {
				call = d.other
			}
			err := call(s)
			if err == nil {
				// A rank that only had to send hears of it in its next call.
				err = s.World.Barrier(s.Ctx)
			}
			s.Fails(err, world.ErrMismatch)
			for _, text := range append(d.named, "world: ", fmt.Sprintf("rank %d", s.n-1)) {
				s.Check(strings.Contains(err.Error(), text), "%q does not say %q", err, text)
			}
			s.Fails(world.AllReduce(s.Ctx, s.World, []int{1}, []int{1}, add[int]), world.ErrMismatch)
			s.Fails(s.World.Barrier(s.Ctx), world.ErrMismatch)
			s.OK(s.World.Close())
		})
	}
}

func TestMismatch(t *testing.T) {
	busy.Acquire(t)
	for i, d := range disputes {
		for k, n := range []int{2, 3, 6} {
			t.Run(fmt.Sprintf("%s/%d ranks", d.name, n), func(t *testing.T) {
				inForms(t, formsByTurn(i, k, n), n, "dispute: "+d.name)
			})
		}
	}
}

// farVariable is the directory in which ranks leave a file that are far ahead.
const farVariable = "RMA_WORLD_TEST_FAR"

// goFarAhead has this rank make more calls than a ledger holds.
func goFarAhead(s *script, data []int) {
	for range 150 {
		// With 4 ranks from rank 1 over rank 3 to rank 0.
		s.OK(world.Broadcast(s.Ctx, s.World, 1, data))
	}
	s.OK(os.WriteFile(filepath.Join(os.Getenv(farVariable), strconv.Itoa(s.me)), nil, 0o600))
	s.Fails(s.World.Barrier(s.Ctx), world.ErrMismatch)
}

// stayBehind returns when all other ranks are far ahead.
func stayBehind(s *script) {
	s.OK(await.Until(s.Ctx, "the others to be far ahead", func() bool {
		files, err := os.ReadDir(os.Getenv(farVariable))
		return err == nil && len(files) == s.n-1
	}))
}

// farAhead has ranks go on for more calls than a ledger holds before one that has no message for them waits
// for one of them, in another call.
var farAhead = register("far ahead", func(s *script) {
	// Longer than what ranks read where the root has left it.
	data := make([]int, 13)
	if s.me > 0 {
		goFarAhead(s, data)
		return
	}
	stayBehind(s)
	s.Fails(world.Reduce(s.Ctx, s.World, 0, data, data, add[int]), world.ErrMismatch)
})

// farAheadOfBoard is farAhead before a rank that looks at the board of one that has gone on.
var farAheadOfBoard = register("far ahead of a board", func(s *script) {
	if s.me > 0 {
		goFarAhead(s, make([]int, 13))
		return
	}
	stayBehind(s)
	s.Fails(world.Broadcast(s.Ctx, s.World, 1, make([]int, 1)), world.ErrMismatch)
})

func TestMismatchFarBehindBoard(t *testing.T) { mismatchFarBehind(t, 6, farAheadOfBoard) }

func TestMismatchFarBehind(t *testing.T) { mismatchFarBehind(t, 4, farAhead) }

func mismatchFarBehind(t *testing.T, n int, name string) {
	t.Helper()
	for _, form := range forms(0, n) {
		t.Run(form.Name, func(t *testing.T) {
			t.Setenv(farVariable, t.TempDir())
			form.Run(t, n, name)
		})
	}
}

func TestMismatchInDissemination(t *testing.T) {
	spread(t)
	for _, d := range disputes {
		for _, n := range []int{3, 6} {
			t.Run(fmt.Sprintf("%s/%d ranks", d.name, n), func(t *testing.T) { jobtest.Goroutines(t, n, "dispute: "+d.name) })
		}
	}
}

// What is wrong with an argument is said at the call, and nothing else happens: the
// ranks go on.
var wrongArguments = register("wrong arguments", func(s *script) {
	ctx, w, n := s.Ctx, s.World, s.n
	one, all := make([]int, 2), make([]int, 2*n)
	// refused checks an error that must say what is wrong and what is allowed.
	refused := func(err error, texts ...string) {
		s.Fails(err, world.ErrArgument)
		for _, text := range append(texts, "world: ") {
			s.Check(strings.Contains(err.Error(), text), "%q does not say %q", err, text)
		}
	}
	roots := errtext.Allowed(n - 1)
	for _, root := range []int{-1, n, 1 << 40} {
		named := fmt.Sprintf("root %d,", root)
		refused(world.Broadcast(ctx, w, root, one), "Broadcast", named, roots)
		refused(world.Gather(ctx, w, root, one, all), "Gather", named, roots)
		refused(world.Scatter(ctx, w, root, all, one), "Scatter", named, roots)
		refused(world.Reduce(ctx, w, root, one, one, add[int]), "Reduce", named, roots)
	}
	for _, wrong := range [][]int{nil, all[:1], make([]int, 2*n+1), make([]int, 3*n)} {
		named, allowed := "has "+errtext.Count(len(wrong), "element"), "must have 2 for each of "+errtext.Count(n, "rank")
		refused(world.Gather(ctx, w, s.me, one, wrong), "Gather", "out "+named, allowed)
		refused(world.Scatter(ctx, w, s.me, wrong, one), "Scatter", "in "+named, allowed)
		refused(world.AllGather(ctx, w, one, wrong), "AllGather", "out "+named, allowed)
		refused(world.AllToAll(ctx, w, all, wrong), "AllToAll", fmt.Sprintf("in has %d elements, out %d", 2*n, len(wrong)))
		refused(world.Reduce(ctx, w, s.me, one, append(wrong, 1, 2, 3), add[int]), "Reduce", "must have 2")
		refused(world.AllReduce(ctx, w, one, append(wrong, 1, 2, 3), add[int]), "AllReduce", "must have 2")
	}
	if n > 1 {
		refused(world.AllToAll(ctx, w, make([]int, n+1), make([]int, n+1)), fmt.Sprintf("multiple of %d", n))
		refused(world.AllGather(ctx, w, make([]struct{}, 1<<62), nil), "out has 0")
	}
	refused(world.Reduce(ctx, w, 0, one, one, nil), "nil combine")
	refused(world.AllReduce(ctx, w, one, one, nil), "nil combine")
	numbers := []float64{1}
	refused(world.AllReduceOp(ctx, w, numbers, numbers, world.Xor), "AllReduceOp: invalid argument: operation not for this element type: Xor of float64; allowed are Sum, Product, Min and Max")
	refused(world.ReduceOp(ctx, w, 0, numbers, numbers, world.Xor+1), "ReduceOp: invalid argument: Replace of float64; allowed are Sum, Product, Min and Max")
	refused(world.AllReduceOp(ctx, w, one, one, world.Op(77)), "operation 77 of int64; allowed are Sum, Product, Min, Max, And, Or and Xor")
	refused(world.ReduceOp(ctx, w, 7, numbers, numbers, world.Sum), "ReduceOp", "root 7")
	refused(world.AllReduceOp(ctx, w, numbers, nil, world.Sum), "AllReduceOp", "must have 1")
	refused(world.AllReduceOp(ctx, nil, numbers, numbers, world.Sum), "nil World")
	refused(world.Broadcast(ctx, w, 0, []string{"a"}), "string", "numbers")
	refused(world.AllGather(ctx, w, []*int{nil}, make([]*int, n)), "*int")
	refused(world.Broadcast(ctx, w, 0, []struct{ A [2]map[int]int }{}), "A map[int]int")

	var missing context.Context
	refused(w.Barrier(missing), "nil context")
	refused(world.AllReduce(missing, w, one, one, add[int]), "nil context")
	refused(world.Broadcast(ctx, nil, 0, one), "nil World")
	refused(world.Gather(ctx, nil, 0, one, all), "nil World")
	refused(world.AllGather(ctx, nil, one, all), "nil World")
	refused(world.Scatter(ctx, nil, 0, all, one), "nil World")
	refused(world.AllToAll(ctx, nil, all, all), "nil World")
	refused(world.Reduce(ctx, nil, 0, one, one, add[int]), "nil World")
	refused(world.AllReduce(ctx, nil, one, one, add[int]), "nil World")
	refused((*world.World)(nil).Barrier(ctx), "nil World")

	for _, call := range longs.calls(s, 0, 3) {
		call()
	}
})

func TestArguments(t *testing.T) {
	busy.Acquire(t)
	for i, n := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) { inForms(t, someForms(2*i, n, 2), n, wrongArguments) })
	}
}

// Gather, Scatter and Reduce do not look at what only the root needs.
func TestOnlyRootArguments(t *testing.T) {
	require.NoError(t, run(t, 3, func(s *script) {
		var all []int
		if s.me == 1 {
			all = []int{5, 6, 7}
		}
		one := make([]int, 1)
		s.OK(world.Scatter(s.Ctx, s.World, 1, all, one))
		s.Check(one[0] == 5+s.me, "part is %d", one[0])
		s.OK(world.Gather(s.Ctx, s.World, 1, one, all))
		if s.me != 1 {
			s.OK(world.Reduce(s.Ctx, s.World, 1, one, nil, add[int]))
			return
		}
		s.OK(world.Reduce(s.Ctx, s.World, 1, one, all[:1], add[int]))
		s.Check(all[0] == 18, "sum is %d", all[0])
	}))
}

// No context is refused where nothing is to be waited for, too.
func TestApproachWithoutContext(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, func(_ context.Context, w *world.World) error {
		var missing context.Context
		if err := job.Of(w).Approach(missing, "", 0); !errors.Is(err, world.ErrArgument) {
			return fmt.Errorf("Approach without a context: %w", err)
		}
		return nil
	}))
}
