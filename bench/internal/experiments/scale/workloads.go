package scale

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A Workload is what each rank does repeatedly in scale.
type Workload struct {
	Name, about string
	// start sets the workload up. iterate runs one iteration. end follows the last iteration.
	start func(ctx context.Context, w *world.World) (iterate, end func(ctx context.Context) error, err error)
}

// measuredIterations is the number of measured iterations, earlierIterations that of the iterations before.
const (
	measuredIterations = 4
	earlierIterations  = 16
)

// Workloads returns the workloads, in the order of the table.
func Workloads() []*Workload {
	return []*Workload{
		{"fence", "a put of 8 bytes to the next rank, and a fence of all", startFences},
		{"stencil", fmt.Sprintf("a step of a 2-D stencil on a torus: a put of %d bytes to each of four neighbors, by post, start, complete and wait", haloBytes), startStencil},
		{"hashtable", fmt.Sprintf("look-ups of %d keys, each of another rank's, in one batch", keysOfRank), startTable},
	}
}

func startFences(ctx context.Context, w *world.World) (iterate, end func(ctx context.Context) error, err error) {
	win, err := window.Allocate[uint64](ctx, w, 1)
	if err != nil {
		return nil, nil, err
	}
	value := make([]uint64, 1)
	next := (w.Rank() + 1) % w.Size()
	iterate = func(ctx context.Context) error {
		if err := win.Put(value, next, 0); err != nil {
			return err
		}
		return win.Fence(ctx)
	}
	end = func(ctx context.Context) error {
		return errors.Join(win.Fence(ctx, window.NoSucceed), win.Close())
	}
	return iterate, end, win.Fence(ctx, window.NoPrecede)
}

// haloBytes is the length of a side of a rank's part of the stencil: 128 values of 8 bytes.
const haloBytes = 1024

func startStencil(ctx context.Context, w *world.World) (iterate, end func(ctx context.Context) error, err error) {
	// Each side is put into its own part of the window.
	win, err := window.Allocate[byte](ctx, w, 4*haloBytes)
	if err != nil {
		return nil, nil, err
	}
	neighbors := torus(w.Rank(), w.Size())
	var others []int
	for _, n := range neighbors {
		if n != w.Rank() && !slices.Contains(others, n) {
			others = append(others, n)
		}
	}
	group, err := win.Group(others...)
	if err != nil {
		return nil, nil, err
	}
	side := make([]byte, haloBytes)
	iterate = func(ctx context.Context) error {
		if err := win.Post(ctx, group); err != nil {
			return err
		}
		if err := win.Start(ctx, group); err != nil {
			return err
		}
		for i, n := range neighbors {
			if n == w.Rank() {
				continue
			}
			if err := win.Put(side, n, i*haloBytes); err != nil {
				return err
			}
		}
		if err := win.Complete(ctx); err != nil {
			return err
		}
		return win.Wait(ctx)
	}
	return iterate, func(context.Context) error { return win.Close() }, nil
}

// torus returns the neighbors of a rank on the grid of n ranks that is closest to a square: left, right, above and
// below.
func torus(rank, n int) [4]int {
	width := int(math.Sqrt(float64(n)))
	for n%width != 0 {
		width--
	}
	height := n / width
	x, y := rank%width, rank/width
	at := func(x, y int) int { return (y+height)%height*width + (x+width)%width }
	return [4]int{at(x-1, y), at(x+1, y), at(x, y-1), at(x, y+1)}
}

// keysOfRank is the number of keys of each rank in the table, and the number of keys that it looks up in an iteration.
const keysOfRank = 16

func startTable(ctx context.Context, w *world.World) (iterate, end func(ctx context.Context) error, err error) {
	table, err := hashtable.New(ctx, w, hashtable.Config{Slots: 16 * keysOfRank, RecordBytes: 8 * keysOfRank * hashtable.CounterBytes(12)})
	if err != nil {
		return nil, nil, err
	}
	key := func(rank, i int) string { return fmt.Sprintf("%06d %05d", rank, i) }
	batch := table.NewBatch()
	for i := range keysOfRank {
		batch.Add(key(w.Rank(), i), uint64(i))
	}
	if err := batch.Run(ctx); err != nil {
		return nil, nil, err
	}
	iterate = func(ctx context.Context) error {
		batch.Reset()
		for i := range keysOfRank {
			batch.Count(key((w.Rank()*7919+i*1299709)%w.Size(), i))
		}
		if err := batch.Run(ctx); err != nil {
			return err
		}
		for i := range batch.Len() {
			if r := batch.Result(i); r.Count != uint64(i) {
				return fmt.Errorf("the table has %d for the key %d of a rank", r.Count, i)
			}
		}
		return nil
	}
	return iterate, func(context.Context) error { return table.Close() }, nil
}
