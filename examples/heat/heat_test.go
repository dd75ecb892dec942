package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

var small = []string{
	kerneltest.Register("a sine, fences", (&job{size: 17, steps: 30, pattern: sine, by: grid.Fence}).run),
	kerneltest.Register("a sine, groups", (&job{size: 40, steps: 20, pattern: sine, by: grid.PSCW}).run),
	kerneltest.Register("spots, notifications", (&job{size: 30, steps: 20, by: grid.Notify}).run),
}

func TestHeat(t *testing.T) { kerneltest.Run(t, small...) }

// The picture shows each block in its place: the spots that were heated are bright.
func TestPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "heat.png")
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "6", "-n", "90", "-steps", "1", "-o", file}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `^rate +[0-9.e+-]+ Mel/s\nleft +[0-9.]+ %\n$`, out.String())
	opened, err := os.Open(file)
	require.NoError(t, err)
	defer opened.Close()
	drawn, err := png.Decode(opened)
	require.NoError(t, err)
	j := &job{size: 90}
	for _, at := range [][2]int{{27, 27}, {54, 63}, {72, 22}, {5, 80}, {85, 85}, {45, 10}} {
		red, _, _, _ := drawn.At(at[1], at[0]).RGBA()
		require.Equal(t, j.start(at[0], at[1]) > 0, red > 0, "line %d, column %d", at[0], at[1])
	}
}

// If the picture's file cannot be made, all ranks get an error before the work begins, which would take days here.
func TestNoFile(t *testing.T) {
	j := &job{size: 9, steps: 1 << 30, by: grid.Fence, file: t.TempDir()}
	failed := make([]error, 3)
	require.ErrorContains(t, world.Run(t.Context(), len(failed), func(ctx context.Context, w *world.World) error {
		failed[w.Rank()] = j.run(ctx, kernel.Of(w, io.Discard))
		return failed[w.Rank()]
	}), "is a directory")
	for rank, err := range failed[1:] {
		require.EqualError(t, err, "world: rank 0 has failed: it cannot make the file for the picture", "rank %d", rank+1)
	}
}

// A job that fails leaves no new file, and does not change the file that was there.
func TestFailed(t *testing.T) {
	was, none := filepath.Join(t.TempDir(), "was.png"), filepath.Join(t.TempDir(), "none.png")
	require.NoError(t, os.WriteFile(was, []byte("an older picture"), 0o600))
	for _, name := range []string{was, none} {
		j := &job{size: 9, steps: 1 << 30, by: grid.Fence, file: name}
		require.ErrorContains(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return errors.New("no luck")
			}
			return j.run(ctx, kernel.Of(w, io.Discard))
		}), "no luck")
	}
	kept, err := os.ReadFile(was)
	require.NoError(t, err)
	require.Equal(t, "an older picture", string(kept))
	require.NoFileExists(t, none)
}

func TestWrong(t *testing.T) {
	var out, errout bytes.Buffer
	require.Equal(t, 2, newKernel().Command(t.Context(), []string{"-start", "cosine"}, &out, &errout))
	require.Contains(t, errout.String(), "must be spots or sine")
}

func Example() {
	var out bytes.Buffer
	fmt.Println(newKernel().Command(context.Background(), []string{"-n", "100", "-steps", "10", "-start", "sine", "-ranks", "2"}, &out, &out))
	// Output: 0
}
