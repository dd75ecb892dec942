package grid

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// ErrArgument reports an impossible array, a nil context or a nil World.
var ErrArgument = errors.New("grid: invalid argument")

// A Sync is a way to synchronize neighbors.
type Sync uint8

// The values of Sync.
const (
	// Fence: every rank waits for all ranks, once before it puts its edges and once after.
	Fence Sync = iota
	// PSCW: each rank waits for its neighbors.
	PSCW
	// Notify: each edge is one notified put to a zone reserved for it. No rank waits before it puts.
	Notify
	syncs
)

func (s Sync) String() string { return [...]string{"fence", "pscw", "notify"}[s] }

// Ways returns the names of all values of Sync.
func Ways() []string { return []string{Fence.String(), PSCW.String(), Notify.String()} }

// Parse returns the Sync with a name.
func Parse(name string) (Sync, error) {
	for s := range syncs {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: %q synchronizes nothing; allowed are %v", ErrArgument, name, Ways())
}

// Arrange returns the rectangle of ranks that is nearest to a square, no wider than high.
func Arrange(ranks int) (high, wide int) {
	wide = 1
	for n := 1; n*n <= ranks; n++ {
		if ranks%n == 0 {
			wide = n
		}
	}
	return ranks / wide, wide
}

// Block returns the lines of part number when n lines are divided into parts parts: from first to before last.
func Block(n, number, parts int) (first, last int) {
	share, more := n/parts, n%parts
	first = number*share + min(number, more)
	last = first + share
	if number < more {
		last++
	}
	return first, last
}

// The directions of neighbors. Opposite directions differ in the lowest bit.
const (
	up = iota
	down
	left
	right
	directions
)

// missing is the rank of a neighbor that does not exist.
const missing = -1

// A neighbor has an edge of this block as its border.
type neighbor struct {
	rank int
	// edge is the part of this rank's memory that is put, and border its place at the neighbor.
	edge, border strip
	elements     int
	// zone and theirs are for Notify, in elements. The neighbor's edges arrive here at zone. This rank's edges arrive
	// at the neighbor at theirs.
	zone, theirs int
}

// A Field is a rank's block of an array. It may be used by one goroutine at a time.
type Field struct {
	// go vet reports a copy, which would take its own turns in the zones of the original.
	_ noCopy
	// Rows and Columns are the size of the block without its border. Top and Left are the position of its first
	// element in the whole array. Width is the width of the border.
	Rows, Columns, Top, Left, Width int

	win       *window.Window[float64]
	by        Sync
	stride    int
	neighbors [directions]neighbor
	group     window.Group
	packed    []float64
	// turn selects one of the two zones of a direction.
	turn int
}

// noCopy makes go vet report copies: vet treats a type with Lock and Unlock as a lock.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// New makes an array of rows by columns zeros, with a border of width lines around each rank's block. It is
// collective. Each block must have at least width rows and columns.
func New(ctx context.Context, w *world.World, rows, columns, width int, by Sync) (*Field, error) {
	if ctx == nil {
		return nil, fmt.Errorf("%w: New with a nil context", ErrArgument)
	}
	if w == nil {
		return nil, fmt.Errorf("%w: New with a nil World", ErrArgument)
	}
	high, wide := Arrange(w.Size())
	if err := Check(w.Size(), rows, columns, width); err != nil {
		return nil, err
	}
	if by >= syncs {
		return nil, fmt.Errorf("%w: no Sync is %d", ErrArgument, by)
	}
	place := func(rank int) *Field {
		f, bottom, end := new(Field), 0, 0
		f.Top, bottom = Block(rows, rank/wide, high)
		f.Left, end = Block(columns, rank%wide, wide)
		f.Rows, f.Columns, f.Width, f.stride = bottom-f.Top, end-f.Left, width, end-f.Left+2*width
		return f
	}
	f := place(w.Rank())
	f.by = by
	number := f.elements()
	if by == Notify {
		number += f.zones()
	}
	win, err := window.Allocate[float64](ctx, w, number)
	if err != nil {
		return nil, fmt.Errorf("grid: New: %w", err)
	}
	f.win = win
	row, column := w.Rank()/wide, w.Rank()%wide
	var ranks []int
	for direction := range directions {
		n := &f.neighbors[direction]
		n.rank = missing
		r, c := row+[...]int{-1, 1, 0, 0}[direction], column+[...]int{0, 0, -1, 1}[direction]
		if r < 0 || r >= high || c < 0 || c >= wide {
			continue
		}
		n.rank = r*wide + c
		other := place(n.rank)
		n.edge, n.border = f.strip(direction, 0), other.strip(direction^1, width)
		n.elements = n.edge.blocks * n.edge.length
		n.zone, n.theirs = f.zone(direction), other.zone(direction^1)
		f.packed = append(f.packed, make([]float64, max(0, n.elements-len(f.packed)))...)
		ranks = append(ranks, n.rank)
	}
	if f.group, err = win.Group(ranks...); err == nil && by == Notify {
		err = win.LockAll(ctx, window.NoCheck)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("grid: New: %w", err), win.Close())
	}
	return f, nil
}

// Check returns an error if there can be no such array on this number of ranks.
func Check(ranks, rows, columns, width int) error {
	high, wide := Arrange(ranks)
	if width < 1 || rows/high < width || columns/wide < width {
		return fmt.Errorf("%w: %d x %d elements on ranks arranged %d x %d, with borders of %d; each rank needs at least as many lines and columns as the border has, and that 1", ErrArgument, rows, columns, high, wide, width)
	}
	return nil
}

// elements returns the number of elements of the block with its border.
func (f *Field) elements() int { return (f.Rows + 2*f.Width) * f.stride }

// A strip is a number of blocks of length elements each, whose starts are stride apart. The first begins at from.
type strip struct{ from, blocks, length, stride int }

func (s *strip) layout() window.Layout { return window.Strided(s.blocks, s.length, s.stride) }

// strip returns the edge of the block in a direction, shifted outward by beyond: the border for the border's width.
func (f *Field) strip(direction, beyond int) strip {
	w, rows, columns := f.Width, f.Rows, f.Columns
	switch direction {
	case up:
		return strip{(w-beyond)*f.stride + w, w, columns, f.stride}
	case down:
		return strip{(rows+beyond)*f.stride + w, w, columns, f.stride}
	case left:
		return strip{w*f.stride + w - beyond, rows, w, f.stride}
	}
	return strip{w*f.stride + columns + beyond, rows, w, f.stride}
}

// With Notify a neighbor's edges arrive after the block, in two zones that take turns. Two zones are enough. A neighbor
// sends its edge of step n+2 only after it has received this rank's edge of step n+1. This rank sends that edge after
// it has unpacked the neighbor's edge of step n.
func (f *Field) zones() int { return f.zone(directions) - f.elements() }

func (f *Field) zone(direction int) int {
	lengths := [...]int{f.Columns, f.Columns, f.Rows, f.Rows}
	at := f.elements()
	for _, length := range lengths[:direction] {
		at += 2 * length * f.Width
	}
	return at
}

// Row returns row i of the block with the borders on both sides: element j of the block is at index Width+j. i is
// from -Width to Rows+Width-1.
func (f *Field) Row(i int) []float64 {
	at := (i + f.Width) * f.stride
	return f.win.Local()[at : at+f.stride : at+f.stride]
}

// Lines returns the rows from first to before last, each as Row returns it, in one slice. stride is the distance
// between their starts.
func (f *Field) Lines(first, last int) (lines []float64, stride int) {
	from, to := (first+f.Width)*f.stride, (last+f.Width)*f.stride
	return f.win.Local()[from:to:to], f.stride
}

// Exchange puts the edges of this block into the borders of its neighbors. It is collective. When it returns, the
// neighbors' edges are here, and the block may be changed.
func (f *Field) Exchange(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: Exchange with a nil context", ErrArgument)
	}
	err := [...]func(context.Context) error{f.byFence, f.byGroups, f.byNotification}[f.by](ctx)
	if err != nil {
		return fmt.Errorf("grid: Exchange: %w", err)
	}
	return nil
}

// put puts all edges.
func (f *Field) put() error {
	memory := f.win.Local()
	for i := range f.neighbors {
		n := &f.neighbors[i]
		if n.rank == missing {
			continue
		}
		if err := f.win.PutLayout(memory[n.edge.from:], n.edge.layout(), n.rank, n.border.from, n.border.layout()); err != nil {
			return err
		}
	}
	return nil
}

func (f *Field) byFence(ctx context.Context) error {
	if err := f.win.Fence(ctx, window.NoPrecede); err != nil {
		return err
	}
	if err := f.put(); err != nil {
		return err
	}
	return f.win.Fence(ctx, window.NoSucceed)
}

func (f *Field) byGroups(ctx context.Context) error {
	if f.group.Len() == 0 {
		return nil
	}
	if err := f.win.Post(ctx, f.group); err != nil {
		return err
	}
	if err := f.win.Start(ctx, f.group); err != nil {
		return err
	}
	err := f.put()
	if e := f.win.Complete(ctx); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return f.win.Wait(ctx)
}

func (f *Field) byNotification(ctx context.Context) error {
	memory := f.win.Local()
	turn := f.turn
	f.turn ^= 1
	for direction := range f.neighbors {
		n := &f.neighbors[direction]
		if n.rank == missing {
			continue
		}
		packed := f.packed[:0]
		for i := range n.edge.blocks {
			packed = append(packed, memory[n.edge.from+i*n.edge.stride:][:n.edge.length]...)
		}
		// At the neighbor the edge arrives from the opposite direction.
		if err := f.win.PutNotify(packed, n.rank, n.theirs+turn*n.elements, direction^1); err != nil {
			return err
		}
		if err := f.win.FlushLocal(ctx, n.rank); err != nil {
			return err
		}
	}
	for direction := range f.neighbors {
		n := &f.neighbors[direction]
		if n.rank == missing {
			continue
		}
		if err := f.win.WaitNotify(ctx, direction, 1); err != nil {
			return err
		}
		f.unpack(direction, memory[n.zone+turn*n.elements:][:n.elements])
	}
	return nil
}

// unpack copies the edge of a neighbor into the border.
func (f *Field) unpack(direction int, packed []float64) {
	border, memory := f.strip(direction, f.Width), f.win.Local()
	for i := range border.blocks {
		packed = packed[copy(memory[border.from+i*border.stride:][:border.length], packed):]
	}
}

// Close ends the array. It is collective.
func (f *Field) Close() error {
	var err error
	if f.by == Notify {
		err = f.win.UnlockAll(context.Background())
	}
	for errors.Is(err, verbs.ErrShortage) && !errors.As(err, new(*world.PeerError)) {
		// The process is out of file descriptors. A window with an open epoch cannot be closed.
		err = f.win.UnlockAll(context.Background())
	}
	if err := errors.Join(err, f.win.Close()); err != nil {
		return fmt.Errorf("grid: Close: %w", err)
	}
	return nil
}

// Flag defines the flag -sync.
func Flag(flags *flag.FlagSet, by *Sync) {
	flags.Func("sync", fmt.Sprintf("the `way` in which neighbors synchronize: %s (default %v)", strings.Join(Ways(), ", "), *by), func(name string) (err error) {
		*by, err = Parse(name)
		return err
	})
}
