package window_test

import (
	"math"
	"testing"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// layoutTable has what layouts touch.
var layoutTable = []struct {
	name             string
	layout           window.Layout
	elements, extent int
	// cause is why operations refuse it as what is written to.
	cause error
}{
	{"none", window.Layout{}, 0, 0, nil},
	{"contiguous", window.Contiguous(5), 5, 5, nil},
	{"nothing", window.Contiguous(0), 0, 0, nil},
	{"strided", window.Strided(3, 2, 5), 6, 12, nil},
	{"side by side", window.Strided(3, 2, 2), 6, 6, nil},
	{"one block of a long stride", window.Strided(1, 2, 1000), 2, 2, nil},
	{"no blocks", window.Strided(0, 2, 5), 0, 0, nil},
	{"empty blocks", window.Strided(4, 0, 5), 0, 0, nil},
	{"overlapping", window.Strided(3, 4, 2), 12, 8, window.ErrOverlap},
	{"one element thrice", window.Strided(3, 1, 0), 3, 1, window.ErrOverlap},
	{"no index", window.Indexed(), 0, 0, nil},
	{"indexed", window.Indexed(window.Block{Offset: 7, Length: 2}, window.Block{Offset: 1, Length: 3}), 5, 9, nil},
	{"an empty block behind all", window.Indexed(window.Block{Offset: 1, Length: 3}, window.Block{Offset: 100}), 3, 4, nil},
	{"a block twice", window.Indexed(window.Block{Offset: 1, Length: 3}, window.Block{Offset: 1, Length: 3}), 6, 4, window.ErrOverlap},
	{"negative", window.Strided(-1, 2, 5), 0, 0, window.ErrArgument},
	{"too many", window.Strided(2, math.MaxInt, 1), 0, 0, window.ErrArgument},
	{"too far", window.Strided(3, 1, math.MaxInt/2), 3, math.MaxInt, window.ErrRange},
}

func TestLayoutSizes(t *testing.T) {
	for _, c := range layoutTable {
		if elements, extent := c.layout.Elements(), c.layout.Extent(); elements != c.elements || extent != c.extent {
			t.Errorf("%s: %d elements to %d, want %d to %d", c.name, elements, extent, c.elements, c.extent)
		}
	}
}

// A part of Extent elements is the least that a layout fits, and Elements what a buffer
// beside it must have.
func TestLayoutFits(t *testing.T) {
	err := world.Run(t.Context(), 1, scripted(func(s *script) {
		for _, c := range layoutTable {
			if c.extent == 0 || c.cause != nil {
				continue
			}
			ones := make([]int64, c.layout.Elements()+1)
			fill(ones, 1)
			for _, extent := range []int{c.layout.Extent() - 1, c.layout.Extent()} {
				win := allocate[int64](s, extent)
				s.OK(win.LockAll(s.Ctx))
				err := win.PutLayout(ones, window.Contiguous(c.layout.Elements()), 0, 0, c.layout)
				if extent < c.layout.Extent() {
					s.Fails(err, window.ErrRange)
				} else {
					s.OK(err)
					sum := int64(0)
					for _, element := range win.Local() {
						sum += element
					}
					s.Check(sum == int64(c.layout.Elements()) && win.Local()[extent-1] == 1, "%s: the part is %v", c.name, win.Local())
				}
				s.Fails(win.PutLayout(ones, window.Contiguous(c.layout.Elements()+1), 0, 0, c.layout), window.ErrArgument)
				s.OK(win.UnlockAll(s.Ctx))
				s.OK(win.Close())
			}
		}
	}))
	if err != nil {
		t.Error(err)
	}
}

// What a layout that is none is refused for.
func TestLayoutRefused(t *testing.T) {
	err := world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[byte](s, 16)
		s.OK(win.LockAll(s.Ctx))
		for _, c := range layoutTable {
			if c.cause != nil {
				s.Fails(win.PutLayout(make([]byte, 12), window.Contiguous(c.elements), 0, 0, c.layout), c.cause)
			}
		}
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.Close())
	}))
	if err != nil {
		t.Error(err)
	}
}

// What is refused for one of its runs has done nothing with those before it.
func TestLayoutRefusedWhole(t *testing.T) {
	err := world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[int64](s, 8, window.SingleElement())
		s.OK(win.LockAll(s.Ctx))
		to := window.Indexed(window.Block{Offset: 0, Length: 1}, window.Block{Offset: 1, Length: 2})
		s.Fails(win.AccumulateLayout(window.Sum, []int64{3, 3, 3}, window.Contiguous(3), 0, 0, to), window.ErrPromise)
		s.OK(win.AccumulateLayout(window.Sum, []int64{3, 3, 3}, window.Contiguous(3), 0, 4, window.Strided(3, 1, 1)))
		s.OK(win.UnlockAll(s.Ctx))
		equal(s, "contents", win.Local(), []int64{0, 0, 0, 0, 3, 3, 3, 0})
		s.OK(win.Close())
	}))
	if err != nil {
		t.Error(err)
	}
}

// Operations on no elements may be after the last element, where the program's memory ends.
func TestNothingAtTheEnd(t *testing.T) {
	err := world.Run(t.Context(), 1, scripted(func(s *script) {
		win, err := window.Create(s.Ctx, s.World, make([]int64, 2))
		s.OK(err)
		s.OK(win.LockAll(s.Ctx))
		var none []int64
		s.OK(win.Put(none, 0, 2))
		s.OK(win.Get(none, 0, 2))
		s.OK(win.Accumulate(window.Sum, none, 0, 2))
		s.OK(win.GetAccumulate(window.Sum, none, none, 0, 2))
		s.OK(win.PutLayout(none, window.Contiguous(0), 0, 2, window.Contiguous(0)))
		s.Fails(win.Put(none, 0, 3), window.ErrRange)
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.Close())
	}))
	if err != nil {
		t.Error(err)
	}
}
