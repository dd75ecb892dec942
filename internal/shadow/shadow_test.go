package shadow_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/shadow"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// drawn is a random program. In each phase ranks put, accumulate and get ranges, and each range has one writer.
var drawn = jobtest.Register("drawn", func(ctx context.Context, w *world.World) error {
	const blocks, block = 8, 50
	win, err := window.Allocate[int32](ctx, w, blocks*block)
	if err != nil {
		return err
	}
	both := shadow.Of(win)
	random := rand.New(rand.NewPCG(testsize.Seed(), 1))
	err = errors.Join(both.Store(w.Size()-1, []int32{7, 8}, 3), win.Fence(ctx))
	for range testsize.N(10) {
		for target := range w.Size() {
			for b := range blocks {
				from, at := random.IntN(w.Size()), b*block+random.IntN(block/2)
				values := make([]int32, 1+random.IntN(block/2))
				for i := range values {
					values[i] = random.Int32()
				}
				switch random.IntN(3) {
				case 0:
					err = errors.Join(err, both.Put(from, values, target, at))
				case 1:
					err = errors.Join(err, both.Accumulate(from, window.Op(random.IntN(int(window.NoOp))), values, target, at))
				case 2:
					err = errors.Join(err, both.Get(from, len(values), target, at))
				}
			}
		}
		err = errors.Join(err, win.Fence(ctx), both.Check(), win.Fence(ctx))
	}
	return errors.Join(err, win.Fence(ctx, window.NoSucceed), win.Close())
})

func TestDrawn(t *testing.T) {
	t.Logf("to repeat: %s", testsize.Again(t.Name()))
	for name, over := range map[string]func(t *testing.T, n int, name string){
		"goroutines": jobtest.Goroutines, "apart": jobtest.Apart, "simulated": jobtest.Simulated,
	} {
		t.Run(name, func(t *testing.T) { over(t, 3, drawn) })
	}
}

// Check finds a difference in memory and in a result.
func TestDifference(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int32](ctx, w, 10)
		if err != nil {
			return err
		}
		both := shadow.Of(win)
		err = errors.Join(win.Fence(ctx), both.Put(0, []int32{5, 6}, 1, 4), win.Fence(ctx))
		if w.Rank() == 1 {
			win.Local()[5]++
			win.Local()[8]++
		}
		err = errors.Join(err, win.Fence(ctx), both.Get(0, 3, 1, 3), win.Fence(ctx, window.NoSucceed))
		var different *shadow.DifferenceError
		if !errors.As(both.Check(), &different) {
			return fmt.Errorf("rank %d finds no difference (%v)", w.Rank(), err)
		}
		want := "shadow: rank 1, displacement 5: the window has 7, want 6; 2 of 10 elements differ"
		if w.Rank() == 0 {
			want = "shadow: rank 1, displacement 5: the window was read as 7, want 6; 1 of 3 elements differ"
		}
		if different.Error() != want {
			return fmt.Errorf("rank %d: %w, want %q", w.Rank(), different, want)
		}
		return errors.Join(err, win.Close())
	}))
}

// A named type has the operations of its kind.
type small int8

// Each operation combines elements as package reduce says. Integers wrap, and a NaN gives a NaN.
func TestCombine(t *testing.T) {
	for op, want := range map[reduce.Op]small{
		reduce.Sum: -127, reduce.Product: 122, reduce.Min: 3, reduce.Max: 126, reduce.And: 2, reduce.Or: 127,
		reduce.Xor: 125, reduce.Replace: 3, reduce.NoOp: 126,
	} {
		m := shadow.NewMemory[small](0, 2)
		m.Rank(1)[1] = 126
		require.NoError(t, m.Accumulate(op, []small{3}, 1, 1))
		require.NoError(t, m.Compare(1, []small{0, want}), "%v", op)
	}
	for op, want := range map[reduce.Op]uint64{reduce.Min: 1, reduce.Max: math.MaxUint64, reduce.And: 1, reduce.Xor: math.MaxUint64 - 1} {
		m := shadow.NewMemory[uint64](1)
		m.Rank(0)[0] = math.MaxUint64
		require.NoError(t, m.Accumulate(op, []uint64{1}, 0, 0))
		require.NoError(t, m.Compare(0, []uint64{want}), "%v", op)
	}
	for op, want := range map[reduce.Op]float32{reduce.Min: -1, reduce.Max: 2, reduce.Sum: 1} {
		m := shadow.NewMemory[float32](2)
		m.Rank(0)[0], m.Rank(0)[1] = 2, float32(math.NaN())
		require.NoError(t, m.Accumulate(op, []float32{-1, 1}, 0, 0))
		require.NoError(t, m.Compare(0, []float32{want, float32(math.NaN())}), "%v", op)
	}
	require.ErrorIs(t, shadow.NewMemory[complex64](1).Accumulate(reduce.Max, []complex64{1}, 0, 0), reduce.ErrUnsupported)
}

// Operations outside the memory of a rank return an error, and change nothing.
func TestRange(t *testing.T) {
	m := shadow.NewMemory[int64](3, 1)
	for _, c := range []struct{ target, displacement int }{{0, 2}, {0, -1}, {1, 0}, {2, 0}, {-1, 0}} {
		two := []int64{1, 2}
		require.ErrorIs(t, m.Put(two, c.target, c.displacement), shadow.ErrRange)
		require.ErrorIs(t, m.Get(two, c.target, c.displacement), shadow.ErrRange)
		require.ErrorIs(t, m.Accumulate(reduce.Sum, two, c.target, c.displacement), shadow.ErrRange)
	}
	require.NoError(t, m.Compare(0, make([]int64, 3)))
	require.ErrorContains(t, m.Compare(1, nil), "rank 1 has 0 elements, want 1")
}

func ExampleMemory() {
	copied := shadow.NewMemory[int64](2, 2)
	_ = copied.Put([]int64{1, 2}, 1, 0)
	_ = copied.Accumulate(reduce.Sum, []int64{10}, 1, 1)
	fmt.Println(copied.Compare(1, []int64{1, 2}))
	// Output: shadow: rank 1, displacement 1: the window has 2, want 12; 1 of 2 elements differ
}
