package globalarray_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

const length = 101

var distributions = []globalarray.Distribution{globalarray.Blocks(), globalarray.Cyclic(1), globalarray.Cyclic(4), globalarray.Cyclic(200)}

// differ returns an error if two slices differ.
func differ[T comparable](what string, got, want []T) error {
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: %v, want %v", what, got, want)
	}
	return nil
}

// mixed makes every kind of call on an array, and applies what all ranks do to a slice.
func mixed(ctx context.Context, w *world.World) error {
	for _, d := range distributions {
		if err := mixedOn(ctx, w, d); err != nil {
			return fmt.Errorf("%v: %w", d, err)
		}
	}
	return nil
}

func mixedOn(ctx context.Context, w *world.World, d globalarray.Distribution) (err error) {
	a, err := globalarray.New[int64](ctx, w, length, d)
	if err != nil {
		return err
	}
	want, got := make([]int64, length), make([]int64, length)
	same := func(what string) error {
		if err := errors.Join(a.Sync(ctx), a.Get(ctx, got, 0)); err != nil {
			return err
		}
		return errors.Join(differ(what, got, want), a.Sync(ctx))
	}
	// Each rank stores to its own elements.
	for i, element := range a.Local() {
		*element = int64(i * i)
	}
	for i := range want {
		want[i] = int64(i * i)
	}
	if err := same("stored"); err != nil {
		return err
	}
	// Every rank adds to some elements, to several of them more than once. All ranks draw the operations of all.
	random := rand.New(rand.NewPCG(formtest.Seed(), 2))
	for rank := range w.Size() {
		values, indices := make([]int64, 9000), make([]int, 9000)
		for i := range values {
			values[i], indices[i] = random.Int64N(1000), random.IntN(length)
			want[indices[i]] += values[i]
		}
		if rank != w.Rank() {
			continue
		}
		if err := a.Accumulate(ctx, window.Sum, values, indices); err != nil {
			return err
		}
	}
	if err := same("added up"); err != nil {
		return err
	}
	// The elements are permuted. Of n ranks each moves every n-th element.
	permutation := random.Perm(length)
	var from, to []int
	moved := slices.Clone(want)
	for i, other := range permutation {
		moved[other] = want[i]
		if i%w.Size() == w.Rank() {
			from, to = append(from, i), append(to, other)
		}
	}
	want = moved
	values := make([]int64, len(from))
	if err := errors.Join(a.Gather(ctx, values, from), a.Sync(ctx), a.Scatter(ctx, values, to)); err != nil {
		return err
	}
	if err := same("permuted"); err != nil {
		return err
	}
	// Each rank that adds one to an element gets another previous value.
	one, before := []int64{1, 1}, make([]int64, 2)
	if err := a.FetchAndOp(ctx, window.Sum, one, before, []int{7, length - 1}); err != nil {
		return err
	}
	all := make([]int64, 2*w.Size())
	if err := world.AllGather(ctx, w, before, all); err != nil {
		return err
	}
	slices.Sort(all)
	for rank := range w.Size() {
		for _, i := range []int{7, length - 1} {
			if _, told := slices.BinarySearch(all, want[i]+int64(rank)); !told {
				return fmt.Errorf("nobody was told %d of element %d: %v", want[i]+int64(rank), i, all)
			}
		}
	}
	want[7], want[length-1] = want[7]+int64(w.Size()), want[length-1]+int64(w.Size())
	if err := errors.Join(a.FetchAndOp(ctx, window.NoOp, nil, before, []int{length - 1, 7}), differ("read", before, []int64{want[length-1], want[7]}), a.Sync(ctx)); err != nil {
		return err
	}
	// One rank puts a row that crosses the parts of all ranks.
	if w.Rank() == w.Size()-1 {
		if err := a.Put(ctx, slices.Repeat([]int64{-1}, length-2), 1); err != nil {
			return err
		}
	}
	for i := 1; i < length-1; i++ {
		want[i] = -1
	}
	if err := same("put"); err != nil {
		return err
	}
	return a.Close()
}

var mixedBody = jobtest.Register("mixed", mixed)

func TestArray(t *testing.T) {
	formtest.Run(t, [3]int{1, 2, 5}, mixedBody)
	t.Run("apart", func(t *testing.T) { jobtest.Apart(t, 3, mixedBody) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 4, mixedBody) })
	t.Run("virtual time", func(t *testing.T) {
		require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 4, mixed))
	})
}

// A call with wrong arguments returns an error and changes nothing.
func TestRefusals(t *testing.T) {
	var none context.Context
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		a, err := globalarray.New[int32](ctx, w, 10, globalarray.Cyclic(2))
		if err != nil {
			return err
		}
		_, errNoContext := globalarray.New[int32](none, w, 10, globalarray.Cyclic(2))
		_, errNoWorld := globalarray.New[int32](ctx, nil, 10, globalarray.Cyclic(2))
		values, results := []int32{1, 2, 3}, []int32{4, 5, 6}
		for _, c := range []struct {
			err  error
			want string
		}{
			{a.Put(ctx, values, 8), "globalarray: Put: 3 elements from index 8 on; the array has 10"},
			{a.Get(ctx, values, -1), "globalarray: Get: 3 elements from index -1 on; the array has 10"},
			{a.Get(ctx, make([]int32, 11), 0), "globalarray: Get: 11 elements from index 0 on; the array has 10"},
			{a.Scatter(ctx, values, []int{0, 1, 10}), "globalarray: Scatter: index 10, number 2 of 3; the array has elements 0 to 9"},
			{a.Gather(ctx, values, []int{-1, 1, 2}), "globalarray: Gather: index -1, number 0 of 3; the array has elements 0 to 9"},
			{a.FetchAndOp(ctx, window.Sum, nil, values, []int{1, 2, 3}), "globalarray: FetchAndOp: invalid argument: 0 values for 3 results; allowed are as many"},
			{a.Accumulate(ctx, window.Sum, values, []int{1, 2}), "globalarray: Accumulate: invalid argument: 2 indices for 3 elements; allowed are as many"},
			{errNoContext, "globalarray: New: invalid argument: nil context"},
			{errNoWorld, "globalarray: New: invalid argument: nil World"},
			{a.Put(none, values, 1), "globalarray: Put: invalid argument: nil context"},
			{a.Get(none, results, 1), "globalarray: Get: invalid argument: nil context"},
			{a.Scatter(none, values, []int{1, 2, 3}), "globalarray: Scatter: invalid argument: nil context"},
			{a.Gather(none, results, []int{1, 2, 3}), "globalarray: Gather: invalid argument: nil context"},
			{a.FetchAndOp(none, window.Sum, values, results, []int{1, 2, 3}), "globalarray: FetchAndOp: invalid argument: nil context"},
			{a.Accumulate(none, window.Sum, values, []int{1, 2, 3}), "globalarray: Accumulate: invalid argument: nil context"},
			{a.Sync(none), "globalarray: Sync: invalid argument: nil context"},
		} {
			if c.err == nil || c.err.Error() != c.want || !errors.Is(c.err, globalarray.ErrArgument) {
				return fmt.Errorf("the error is %q, want %q", c.err, c.want)
			}
		}
		if err := errors.Join(a.Sync(ctx), differ("part", a.Part(), make([]int32, a.Count(w.Rank()))), differ("results", results, []int32{4, 5, 6})); err != nil {
			return err
		}
		return a.Close()
	}))
}

// An array is passed by pointer: go vet finds a copy.
func TestVetFindsACopiedArray(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copied").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "assignment copies lock value to other: github.com/onesided/rma/examples/globalarray.Array[int]")
}

func TestMismatch(t *testing.T) {
	for _, shapes := range [][2]globalarray.Distribution{{globalarray.Blocks(), globalarray.Cyclic(3)}, {globalarray.Cyclic(2), globalarray.Cyclic(3)}} {
		require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			_, err := globalarray.New[int32](ctx, w, 10, shapes[w.Rank()])
			if !errors.Is(err, globalarray.ErrMismatch) {
				return fmt.Errorf("the error is %v", err)
			}
			return nil
		}))
	}
}

const victim = 1

// survivors continue with the elements that the dead rank did not have.
var survivors = jobtest.Register("survivors", func(ctx context.Context, w *world.World) error {
	a, err := globalarray.New[int64](ctx, w, 10*w.Size(), globalarray.Blocks())
	if err != nil {
		return err
	}
	if err := a.Sync(ctx); err != nil {
		return err
	}
	jobtest.Signal("ready")
	if w.Rank() == victim {
		<-ctx.Done()
		return ctx.Err()
	}
	wait := job.Of(w).NewWaiter()
	defer wait.Finish()
	for len(w.Failures()) == 0 {
		if err := wait.Pause(ctx); err != nil {
			return err
		}
	}
	lost := func(err error) bool {
		var dead *world.PeerError
		return errors.As(err, &dead) && dead.Rank == victim
	}
	values := make([]int64, a.Len())
	if err := a.Get(ctx, values, 0); !lost(err) {
		return fmt.Errorf("Get of elements of the dead, too: %v", err)
	}
	for rank := range w.Size() {
		if err := a.Accumulate(ctx, window.Sum, []int64{1}, []int{10 * rank}); lost(err) != (rank == victim) || err != nil && !lost(err) {
			return fmt.Errorf("Accumulate at rank %d: %v", rank, err)
		}
	}
	if err := a.Sync(ctx); !lost(err) {
		return fmt.Errorf("Sync: %v", err)
	}
	_ = a.Close()
	return nil
})

func TestDeath(t *testing.T) {
	jobtest.Start(t, 3, survivors).Killed(victim)
}
