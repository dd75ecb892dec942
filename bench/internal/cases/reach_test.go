package cases

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world"
)

// cellsOf returns cells, each named as case:size.
func cellsOf(t *testing.T, names ...string) []Cell {
	t.Helper()
	var cells []Cell
	for _, text := range names {
		name, size, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(size)
		require.NoError(t, err, text)
		require.NotNil(t, ByName(name), text)
		cells = append(cells, Cell{ByName(name), n})
	}
	return cells
}

func TestCellsReachWholePages(t *testing.T) {
	for _, test := range []struct {
		cells          []string
		window, buffer int
	}{
		{[]string{"fop_lat:8"}, hugePage, hugePage},
		{[]string{"put_flush_lat:8"}, hugePage, hugePage},
		{[]string{"put_flush_lat:8", "put_flush_lat:2097153", "acc_flush_lat:4194312"}, 3 * hugePage, 2 * hugePage},
		{[]string{"put_bw:1048576"}, streamTo, streamFrom},
		{[]string{"scatter_rate:1000"}, windowBytes, hugePage},
		{[]string{"pattern16_bw:131073"}, getsAt + 2*hugePage, getsAt + 2*hugePage},
		{[]string{"msg_bw:8"}, hugePage, getsAt + hugePage},
	} {
		window, buffer := reachOf(cellsOf(t, test.cells...))
		assert.Equal(t, []int{test.window, test.buffer}, []int{window, buffer}, test.cells)
	}
}

func TestABoardIsAsLargeAsItsCellsReach(t *testing.T) {
	cells := cellsOf(t, "put_flush_lat:8", "put_flush_lat:2097153")
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		b, err := New(ctx, w, cells, nil, false)
		if err != nil {
			return err
		}
		other, err := b.WithNewWindow(ctx, w, nil)
		if err != nil {
			return err
		}
		assert.Equal(t, 2*hugePage, len(b.buffer))
		assert.Equal(t, 2*hugePage, len(b.bytes.Local()))
		assert.Equal(t, 2*hugePage, len(other.bytes.Local()))
		return errors.Join(other.Close(), b.Close())
	}))
	assert.Equal(t, hugePage, len(NewSocketEnd(t.Context(), 0, cellsOf(t, "socket_lat:8")).memory))
}

// Windows and buffers have no byte more than what the reach says, but for what makes a window one of whole words.
func TestACaseStaysWithinItsReach(t *testing.T) {
	// A rank that fails leaves the other waiting for its message.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var cells, random []Cell
	limited := 0
	for _, c := range All() {
		switch {
		case c.reach == nil || c.origin == nil:
		case c.Limit > 0:
			// A plain run has every other case at its own size, and the rest at one that is of no whole pages.
			limited++
			for _, i := range testsize.Turns(limited, 2, 1) {
				cells = append(cells, Cell{c, []int{c.Each, 300_000}[i]})
			}
		default:
			one := Cell{c, c.Sizes[0]}
			if window, _ := c.reach(one.Size); window == windowBytes {
				random = append(random, one)
			} else {
				cells = append(cells, one)
			}
		}
	}
	fabric := shm.NewFabric()
	for _, one := range append(cells, benchtest.SomeOf(random...)...) {
		require.NoError(t, world.Run(ctx, 2, func(ctx context.Context, w *world.World) error {
			return withinReach(ctx, w, fabric, one)
		}), one.String())
	}
}

func withinReach(ctx context.Context, w *world.World, fabric *shm.Fabric, one Cell) error {
	// Buffers of the kind of their first cell, Collective, have no window yet.
	b, err := New(ctx, w, []Cell{{ByName("bcast_lat"), 8}, one}, nil, true)
	if err != nil {
		return err
	}
	window, buffer := one.Case.reach(one.Size)
	b.buffer = b.buffer[:buffer:buffer]
	b.size = (window + 7) / 8 * 8
	switch one.Case.Kind {
	case Messages:
		err = b.Connect(ctx, []Cell{one}, func() (verbs.Device, error) { return fabric.Open() }, false)
	case Passive, Fence, PSCW:
		err = b.allocate(ctx, w, nil)
	}
	if err != nil {
		return err
	}
	if err := b.Begin(ctx, one.Case.Kind); err != nil {
		return err
	}
	// Ranks that only wait do so in a barrier.
	for range 2 {
		if err := Loop(ctx, b, (&Rank{World: w}).Step(one.Case), one.Size, 1); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
	}
	if err := b.End(ctx, one.Case.Kind); err != nil {
		return err
	}
	return b.Close()
}
