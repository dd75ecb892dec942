package window

import (
	"fmt"
	"math"
	"slices"

	"github.com/onesided/rma/internal/errtext"
)

// A Layout says which elements of a buffer or window an operation touches, in the
// order in which they are matched with the other side's. It is made by
// Contiguous, Strided or Indexed; the zero value is empty. Offsets count elements
// from the buffer's first, or from the operation's displacement in a window.
type Layout struct {
	// A strided layout: blocks of length elements, stride apart.
	blocks, length, stride int
	// An indexed layout: its blocks.
	index []Block
	// elements in all, and one past the last that is touched.
	elements, extent int
	// overlaps: some element is touched twice.
	overlaps bool
	err      error
}

// A Block is Length elements from Offset on.
type Block struct{ Offset, Length int }

// Contiguous is n elements side by side.
func Contiguous(n int) Layout {
	if n < 0 {
		return Layout{err: fmt.Errorf("%w: Contiguous(%d) must not be negative", ErrArgument, n)}
	}
	return Strided(1, n, n)
}

// Strided is blocks of length elements each, the starts stride elements apart.
func Strided(blocks, length, stride int) Layout {
	l := Layout{blocks: blocks, length: length, stride: stride}
	switch {
	case blocks < 0 || length < 0 || stride < 0:
		l.err = fmt.Errorf("%w: Strided(%d, %d, %d) must have no negative number", ErrArgument, blocks, length, stride)
	case blocks == 0 || length == 0:
		l.blocks = 0
	case length > math.MaxInt/blocks || blocks > 1 && stride > (math.MaxInt-length)/(blocks-1):
		l.err = fmt.Errorf("%w: Strided(%d, %d, %d) overflows", ErrArgument, blocks, length, stride)
	default:
		l.elements = blocks * length
		l.extent = (blocks-1)*stride + length
		l.overlaps = blocks > 1 && stride < length
	}
	return l
}

// Indexed is the blocks in their order. The slice belongs to the layout from then on.
func Indexed(blocks ...Block) Layout {
	l := Layout{index: blocks}
	for i, b := range blocks {
		if b.Offset < 0 || b.Length < 0 {
			l.err = fmt.Errorf("%w: Indexed: block %d is %+v, and must have no negative number", ErrArgument, i, b)
			return l
		}
		if b.Length > math.MaxInt-b.Offset || b.Length > math.MaxInt-l.elements {
			l.err = fmt.Errorf("%w: Indexed: block %d is %+v, which overflows", ErrArgument, i, b)
			return l
		}
		l.elements += b.Length
		if b.Length > 0 {
			l.extent = max(l.extent, b.Offset+b.Length)
		}
	}
	l.overlaps = overlapping(blocks)
	return l
}

func overlapping(blocks []Block) bool {
	sorted := slices.DeleteFunc(slices.Clone(blocks), func(b Block) bool { return b.Length == 0 })
	slices.SortFunc(sorted, func(a, b Block) int { return a.Offset - b.Offset })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Offset < sorted[i-1].Offset+sorted[i-1].Length {
			return true
		}
	}
	return false
}

// Elements is how many elements the layout touches.
func (l Layout) Elements() int { return l.elements }

// Extent is the number of elements from offset 0 to the last one touched: the
// least length of a buffer that the layout fits.
func (l Layout) Extent() int { return l.extent }

// block is the i-th block, and whether there is one.
func (l *Layout) block(i int) (Block, bool) {
	if l.index != nil {
		if i < len(l.index) {
			return l.index[i], true
		}
		return Block{}, false
	}
	return Block{Offset: i * l.stride, Length: l.length}, i < l.blocks
}

// A cursor walks a layout in runs that the other side's layout cuts shorter.
type cursor struct {
	layout *Layout
	next   int
	now    Block
}

// take gives the next run of at most limit elements; 0 elements at the end.
func (c *cursor) take(limit int) Block {
	for c.now.Length == 0 {
		b, ok := c.layout.block(c.next)
		if !ok {
			return Block{}
		}
		c.next++
		c.now = b
	}
	run := Block{c.now.Offset, min(limit, c.now.Length)}
	c.now.Offset += run.Length
	c.now.Length -= run.Length
	return run
}

// left is how many elements can be taken before the block ends.
func (c *cursor) left() int {
	for c.now.Length == 0 {
		b, ok := c.layout.block(c.next)
		if !ok {
			return 0
		}
		c.next++
		c.now = b
	}
	return c.now.Length
}

// pairs calls do for each pair of runs of two layouts of equally many elements:
// offsets a and b, n elements.
func pairs(a, b *Layout, do func(a, b, n int) error) error {
	ca, cb := cursor{layout: a}, cursor{layout: b}
	for {
		n := min(ca.left(), cb.left())
		if n == 0 {
			return nil
		}
		ra, rb := ca.take(n), cb.take(n)
		if err := do(ra.Offset, rb.Offset, n); err != nil {
			return err
		}
	}
}

// checkLayouts says why an operation between a buffer and target's window is
// refused. written is the layout that is written to, which must not overlap.
func (w *Window[T]) checkLayouts(call string, buffer []T, local Layout, target, displacement int, remote Layout, written *Layout) error {
	refuse := func(cause error) error {
		return &OpError{Op: call, Target: target, Displacement: displacement, Count: remote.elements, Cause: cause}
	}
	switch {
	case local.err != nil:
		return refuse(local.err)
	case remote.err != nil:
		return refuse(remote.err)
	case local.elements != remote.elements:
		return refuse(fmt.Errorf("%w: the buffer's layout has %s, the target's %d; they must have as many", ErrArgument, errtext.Count(local.elements, "element"), remote.elements))
	case local.extent > len(buffer):
		return refuse(fmt.Errorf("%w: the layout needs a buffer of %s, it has %d", ErrArgument, errtext.Count(local.extent, "element"), len(buffer)))
	case written.overlaps:
		return refuse(fmt.Errorf("%w: it writes an element twice", ErrOverlap))
	}
	_, err := w.view.reach(call, target, displacement, remote.extent)
	return err
}

// PutLayout writes the elements of origin that from touches to those of target's
// window that to touches from displacement on, which must not overlap.
func (w *Window[T]) PutLayout(origin []T, from Layout, target, displacement int, to Layout) error {
	if err := w.checkLayouts("PutLayout", origin, from, target, displacement, to, &to); err != nil {
		return err
	}
	return pairs(&from, &to, func(o, t, n int) error {
		return w.Put(origin[o:o+n], target, displacement+t)
	})
}

// GetLayout reads the elements of target's window that from touches from
// displacement on into those of result that to touches, which must not overlap.
func (w *Window[T]) GetLayout(result []T, to Layout, target, displacement int, from Layout) error {
	if err := w.checkLayouts("GetLayout", result, to, target, displacement, from, &to); err != nil {
		return err
	}
	return pairs(&to, &from, func(o, t, n int) error {
		return w.Get(result[o:o+n], target, displacement+t)
	})
}

// AccumulateLayout combines the elements of origin that from touches into those of
// target's window that to touches from displacement on. Elements that to touches
// more than once are combined as often.
func (w *Window[T]) AccumulateLayout(op Op, origin []T, from Layout, target, displacement int, to Layout) error {
	var free Layout
	if err := w.checkLayouts("AccumulateLayout", origin, from, target, displacement, to, &free); err != nil {
		return err
	}
	// The longest run says whether any is refused, before one is carried out.
	longest := 0
	_ = pairs(&from, &to, func(_, _, n int) error {
		longest = max(longest, n)
		return nil
	})
	if longest == 0 {
		return nil
	}
	if err := w.view.refuseOp(op, longest); err != nil {
		return &OpError{Op: "AccumulateLayout", Target: target, Displacement: displacement, Count: to.elements, Cause: err}
	}
	return pairs(&from, &to, func(o, t, n int) error {
		return w.Accumulate(op, origin[o:o+n], target, displacement+t)
	})
}
