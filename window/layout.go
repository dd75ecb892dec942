package window

import (
	"fmt"
	"math"
	"slices"

	"github.com/onesided/rma/internal/errtext"
)

// A Layout selects elements of a buffer or window for an operation, in an order. The i-th element of one layout is
// matched with the i-th of the other. [Contiguous], [Strided] and [Indexed] make layouts; the zero Layout is empty.
// Offsets count elements from the start of the buffer, or from the displacement of the operation in a window.
//
// A layout with a negative or too large number is invalid: the operation that gets it returns an [ErrArgument].
type Layout struct {
	// blocks, length and stride describe a strided layout: blocks of length elements, stride elements apart.
	blocks, length, stride int
	// index has the blocks of an indexed layout.
	index []Block
	// elements is the number of elements, extent is one past the offset of the last one.
	elements, extent int
	// overlaps is set if an element is touched twice.
	overlaps bool
	err      error
}

// A Block is Length elements, starting at Offset.
type Block struct{ Offset, Length int }

// Contiguous returns a layout of n adjacent elements.
func Contiguous(n int) Layout {
	if n < 0 {
		return Layout{err: fmt.Errorf("%w: Contiguous(%d) must not be negative", ErrArgument, n)}
	}
	return Strided(1, n, n)
}

// Strided returns a layout of blocks of length elements each. The blocks start stride elements apart.
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

// Indexed returns a layout of blocks, in this order. The slice belongs to the layout from then on.
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

// Elements returns the number of elements that the layout touches.
func (l Layout) Elements() int { return l.elements }

// Extent returns the number of elements from offset 0 to the last one that the layout touches. A buffer of this length
// fits the layout.
func (l Layout) Extent() int { return l.extent }

// block returns the i-th block, and false if there is none.
func (l *Layout) block(i int) (Block, bool) {
	if l.index != nil {
		if i < len(l.index) {
			return l.index[i], true
		}
		return Block{}, false
	}
	return Block{Offset: i * l.stride, Length: l.length}, i < l.blocks
}

// A cursor walks a layout in runs. The other layout may cut a block into several runs.
type cursor struct {
	layout *Layout
	next   int
	now    Block
}

// take returns the next run, of at most limit elements, and an empty one at the end.
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

// left returns the number of elements that remain in the current block, and 0 at the end.
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

// pairs calls do for each pair of runs of two layouts with equal numbers of elements. Each call is for n elements, at
// offset a of the first layout and at offset b of the second.
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

// checkLayouts returns the error that rejects an operation between a buffer and target's window. written is the layout
// that is written to, which must not overlap.
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
	_, err := w.of().reach(call, target, displacement, remote.extent)
	return err
}

// PutLayout writes elements of origin to target's window. from selects the elements of origin, and to as many of the
// window, from displacement on. If to selects an element twice, PutLayout returns an [ErrOverlap]. If the layouts
// select different numbers of elements, it returns an [ErrArgument]. origin belongs to the library as in [Window.Put].
func (w *Window[T]) PutLayout(origin []T, from Layout, target, displacement int, to Layout) error {
	if err := w.checkLayouts("PutLayout", origin, from, target, displacement, to, &to); err != nil {
		return err
	}
	return pairs(&from, &to, func(o, t, n int) error {
		return w.Put(origin[o:o+n], target, displacement+t)
	})
}

// GetLayout reads elements of target's window into result. from selects the elements of the window, from displacement
// on, and to as many of result. If to selects an element twice, GetLayout returns an [ErrOverlap]. If the layouts
// select different numbers of elements, it returns an [ErrArgument]. result is valid as in [Window.Get].
func (w *Window[T]) GetLayout(result []T, to Layout, target, displacement int, from Layout) error {
	if err := w.checkLayouts("GetLayout", result, to, target, displacement, from, &to); err != nil {
		return err
	}
	return pairs(&to, &from, func(o, t, n int) error {
		return w.Get(result[o:o+n], target, displacement+t)
	})
}

// AccumulateLayout combines elements of origin into target's window, as [Window.Accumulate] does. from selects the
// elements of origin. to selects those of the window, from displacement on. An element that to selects n times is
// combined n times.
func (w *Window[T]) AccumulateLayout(op Op, origin []T, from Layout, target, displacement int, to Layout) error {
	var free Layout
	if err := w.checkLayouts("AccumulateLayout", origin, from, target, displacement, to, &free); err != nil {
		return err
	}
	// refuseOp depends on the length of a run: the longest one decides, before any run moves.
	longest := 0
	_ = pairs(&from, &to, func(_, _, n int) error {
		longest = max(longest, n)
		return nil
	})
	if longest == 0 {
		return nil
	}
	if err := w.of().refuseOp(op, longest); err != nil {
		return &OpError{Op: "AccumulateLayout", Target: target, Displacement: displacement, Count: to.elements, Cause: err}
	}
	return pairs(&from, &to, func(o, t, n int) error {
		return w.Accumulate(op, origin[o:o+n], target, displacement+t)
	})
}
