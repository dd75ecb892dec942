package grid_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

func TestArrange(t *testing.T) {
	for ranks, want := range map[int][2]int{1: {1, 1}, 2: {2, 1}, 3: {3, 1}, 4: {2, 2}, 6: {3, 2}, 12: {4, 3}, 13: {13, 1}, 64: {8, 8}} {
		high, wide := grid.Arrange(ranks)
		require.Equal(t, want, [2]int{high, wide}, "%d ranks", ranks)
	}
}

// at returns the value of element i, j of the whole array in a step.
func at(i, j, step int) float64 { return float64(1000*i + j + 1000000*step) }

// exchange returns a body that checks all borders after each step.
func exchange(by grid.Sync) jobtest.Body {
	return func(ctx context.Context, w *world.World) error {
		for _, shape := range [][3]int{{12, 9, 1}, {25, 26, 3}} {
			rows, columns, width := shape[0], shape[1], shape[2]
			f, err := grid.New(ctx, w, rows, columns, width, by)
			if err != nil {
				return err
			}
			for step := range 5 {
				for i := range f.Rows {
					for j := range f.Columns {
						f.Row(i)[width+j] = at(f.Top+i, f.Left+j, step)
					}
				}
				if err := f.Exchange(ctx); err != nil {
					return err
				}
				if err := look(f, rows, columns, step); err != nil {
					return err
				}
			}
			if err := f.Close(); err != nil {
				return err
			}
		}
		return nil
	}
}

func look(f *grid.Field, rows, columns, step int) error {
	lines, stride := f.Lines(-f.Width, f.Rows+f.Width)
	for i := -f.Width; i < f.Rows+f.Width; i++ {
		if here := (i + f.Width) * stride; &lines[here] != &f.Row(i)[0] {
			return fmt.Errorf("line %d is not at %d of Lines", i, here)
		}
		for j := -f.Width; j < f.Columns+f.Width; j++ {
			inside := i >= 0 && i < f.Rows
			if !inside && (j < 0 || j >= f.Columns) {
				continue // a corner
			}
			want, r, c := 0.0, f.Top+i, f.Left+j
			if r >= 0 && r < rows && c >= 0 && c < columns {
				want = at(r, c, step)
			}
			if got := f.Row(i)[f.Width+j]; got != want {
				return fmt.Errorf("step %d: element %d, %d is %v, want %v", step, r, c, got, want)
			}
		}
	}
	return nil
}

var names = map[grid.Sync]string{
	grid.Fence:  jobtest.Register("fence", exchange(grid.Fence)),
	grid.PSCW:   jobtest.Register("pscw", exchange(grid.PSCW)),
	grid.Notify: jobtest.Register("notify", exchange(grid.Notify)),
}

func TestExchange(t *testing.T) {
	for by, name := range names {
		t.Run(by.String(), func(t *testing.T) {
			jobtest.Run(t, 1, name)
			formtest.Run(t, [3]int{2, 4, 6}, name)
		})
	}
}

func TestWrong(t *testing.T) {
	for _, shape := range [][3]int{{0, 5, 1}, {5, 5, 0}, {3, 9, 2}, {9, 0, 1}} {
		require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			_, err := grid.New(ctx, w, shape[0], shape[1], shape[2], grid.Fence)
			if !errors.Is(err, grid.ErrArgument) {
				return fmt.Errorf("%v: %w", shape, err)
			}
			return nil
		}))
	}
	_, err := grid.Parse("never")
	require.ErrorIs(t, err, grid.ErrArgument)
	require.ErrorContains(t, err, "allowed are [fence pscw notify]")
}

// An Exchange without a context is refused before it puts anything, also where there is no neighbor, and the next one is as usual.
func TestNilContext(t *testing.T) {
	var none context.Context
	for by := range names {
		for _, ranks := range []int{1, 2} {
			require.NoError(t, world.Run(t.Context(), ranks, func(ctx context.Context, w *world.World) error {
				_, errNoContext := grid.New(none, w, 6, 6, 1, by)
				_, errNoWorld := grid.New(ctx, nil, 6, 6, 1, by)
				f, err := grid.New(ctx, w, 6, 6, 1, by)
				if err != nil {
					return err
				}
				for step := range 3 {
					for i := range f.Rows {
						for j := range f.Columns {
							f.Row(i)[f.Width+j] = at(f.Top+i, f.Left+j, step)
						}
					}
					for _, err := range []error{errNoContext, errNoWorld, f.Exchange(none)} {
						if !errors.Is(err, grid.ErrArgument) {
							return fmt.Errorf("the error is %w", err)
						}
					}
					if err := f.Exchange(ctx); err != nil {
						return err
					}
					if err := look(f, 6, 6, step); err != nil {
						return err
					}
				}
				return f.Close()
			}), "%v, %d ranks", by, ranks)
		}
	}
}

// A field is passed by pointer: go vet finds a copy.
func TestVetFindsACopiedField(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "vet", "-copylocks", "./testdata/copied").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "assignment copies lock value to other: github.com/onesided/rma/examples/grid.Field")
}

func Example() {
	err := world.Run(context.Background(), 2, func(ctx context.Context, w *world.World) error {
		f, err := grid.New(ctx, w, 4, 3, 1, grid.PSCW)
		if err != nil {
			return err
		}
		for i := range f.Rows {
			for j := range f.Columns {
				f.Row(i)[f.Width+j] = float64(10*(f.Top+i) + f.Left + j)
			}
		}
		if err := f.Exchange(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			fmt.Println("below:", f.Row(f.Rows)[f.Width:f.Width+f.Columns])
		}
		return f.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: below: [20 21 22]
}
