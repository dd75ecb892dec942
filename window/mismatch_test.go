package window_test

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A collective is a call of a window that all ranks have to make alike.
type collective struct {
	name    string
	asserts []window.Assert
}

var collectives = []collective{
	{"Close", nil},
	{"Fence", nil},
	{"Fence(NoPrecede)", []window.Assert{window.NoPrecede}},
	{"Fence(NoSucceed)", []window.Assert{window.NoSucceed}},
	{"Fence(NoPrecede|NoSucceed)", []window.Assert{window.NoPrecede, window.NoSucceed}},
}

func (c collective) make(ctx context.Context, win *window.Window[int64]) error {
	if c.name == "Close" {
		return win.Close()
	}
	// These two every rank may assert for itself.
	return win.Fence(ctx, append([]window.Assert{[]window.Assert{window.NoPut, window.NoStore}[win.World().Rank()%2]}, c.asserts...)...)
}

// closes reports whether the call may be made with an epoch open that has operations.
func (c collective) closes() bool { return c.name == "Fence" || c.name == "Fence(NoSucceed)" }

// unlike has, for each two calls, one rank make the one where the others make the other. Every rank gets an error
// that names both, also from the Fences after it, and other windows and the World go on.
var unlike = registerShared("collective calls of a window that differ", []int{2, 3, 5}, func(s *script) {
	other := allocate[int64](s, 1)
	s.OK(other.Fence(s.Ctx))
	size, me := s.World.Size(), s.World.Rank()
	odd := 0
	for _, a := range collectives {
		for _, b := range collectives {
			if a.name == b.name {
				continue
			}
			odd = (odd + 1) % size
			win := allocate[int64](s, size)
			number := 1
			if a.closes() && b.closes() {
				s.OK(win.Fence(s.Ctx))
				number++
				for rank := range size {
					s.OK(win.Put([]int64{1}, rank, me))
				}
			}
			mine := b
			if me == odd {
				mine = a
			}
			err := mine.make(s.Ctx, win)
			s.differ(err, odd, a.name, b.name, number)
			if mine.name != "Close" {
				s.differ(win.Fence(s.Ctx), odd, a.name, b.name, number)
				s.OK(win.Close())
			}
			s.OK(other.Put([]int64{int64(me)}, (me+1)%size, 0))
			s.OK(other.Fence(s.Ctx))
			want := int64((me + size - 1) % size)
			s.Check(other.Local()[0] == want, "another window has %d, want %d", other.Local()[0], want)
		}
	}
	s.OK(other.Fence(s.Ctx, window.NoSucceed))
	s.OK(other.Close())
	s.OK(s.World.Barrier(s.Ctx))
})

// differ looks whether an error names the call of rank odd and that of another one.
func (s *script) differ(err error, odd int, oddCall, othersCall string, number int) {
	s.Fails(err, window.ErrMismatch)
	var mismatch *window.MismatchError
	s.Check(errors.As(err, &mismatch), "error is %T", err)
	call := func(rank int) any {
		if rank == odd {
			return oddCall
		}
		return othersCall
	}
	first, second := mismatch.WantRank, mismatch.Rank
	s.Check(first < second && (first == odd || second == odd) && mismatch.Want == call(first) && mismatch.Value == call(second) && int(mismatch.Number) == number,
		"rank %d has called %s, others %s, as call %d: %v", odd, oddCall, othersCall, number, err)
}

func TestUnlikeCalls(t *testing.T) {
	runShared(t, unlike)
	t.Run("cards", func(t *testing.T) { jobtest.Cards(t, 2, unlike, false) })
	t.Run("coherent cards", func(t *testing.T) { jobtest.Cards(t, 3, unlike, true) })
	t.Run("simulated", func(t *testing.T) { jobtest.Simulated(t, 3, unlike) })
	if !testsize.Race {
		t.Run("namespaces", func(t *testing.T) { jobtest.Namespaces(t, 3, unlike) })
	}
}

// unlikeAt has ranks that look for misuse make different calls, whose places both of them name.
var unlikeAt = jobtest.RegisterWith("places of calls that differ", func() ([]world.Option, error) { return []world.Option{world.WithDebug()}, nil }, scripted(func(s *script) {
	win := allocate[int64](s, 1)
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	var err error
	const place = ` at \S+mismatch_test\.go:\d+`
	others := place
	if s.World.Rank() == 0 {
		ended, end := context.WithCancel(s.Ctx)
		end()
		if err = win.Fence(ended); errors.Is(err, context.Canceled) {
			err = win.Fence(s.Ctx)
		} else {
			// It has no time to ask over a link.
			others = `(` + place + `)?`
		}
	} else {
		err = win.Close()
	}
	s.Fails(err, window.ErrMismatch)
	var mismatch *window.MismatchError
	s.Check(errors.As(err, &mismatch) && mismatch.Value == "Close" && mismatch.Want == "Fence", "error is %v", err)
	matched := regexp.MustCompile(`rank 1 called Close` + others + `, rank 0 called Fence` + place + `$`).MatchString(err.Error())
	s.Check(matched, "error is %v", err)
	if s.World.Rank() == 0 {
		s.OK(win.Close())
	}

	// A call that is cut short names its first place.
	ended, end := context.WithCancel(s.Ctx)
	end()
	memory := make([]int64, 1)
	makeUnlike := func(ctx context.Context) error {
		if s.World.Rank() == 0 {
			return made(window.Allocate[int64](ctx, s.World, 1))
		}
		return made(window.Create(ctx, s.World, memory))
	}
	if err = makeUnlike(ended); errors.Is(err, context.Canceled) {
		err = makeUnlike(s.Ctx)
	}
	s.Fails(err, window.ErrMismatch)
	matched = regexp.MustCompile(`rank 1 called Create` + place + `, rank 0 called Allocate` + place + `$`).MatchString(err.Error())
	s.Check(matched, "error is %v", err)
	err = made(window.Allocate[int64](s.Ctx, s.World, 1, window.Notifications(3+s.World.Rank())))
	s.Fails(err, window.ErrMismatch)
	matched = regexp.MustCompile(`rank 1 passed Notifications 4` + place + `, rank 0 passed 3` + place + `$`).MatchString(err.Error())
	s.Check(matched, "error is %v", err)
}))

func TestPlacesOfUnlikeCalls(t *testing.T) {
	for _, f := range jobtest.ProcessForms(2) {
		t.Run(f.Name, func(t *testing.T) { f.Run(t, 2, unlikeAt) })
	}
}

// crossing are ranks that call Fences, and then Close, of two windows in different orders: those of one window do not end by
// those of another one.
var crossing = registerShared("collective calls of two windows that cross", []int{2}, func(s *script) {
	var windows [2]*window.Window[int64]
	for i := range windows {
		windows[i] = allocate[int64](s, 1)
	}
	ended, end := context.WithCancel(s.Ctx)
	end()
	first, second := windows[s.World.Rank()], windows[1-s.World.Rank()]
	s.Fails(first.Fence(ended, window.NoSucceed), context.Canceled)
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(second.Fence(s.Ctx, window.NoSucceed))
	s.OK(first.Fence(s.Ctx, window.NoSucceed))
	closed := make(chan error)
	go func() { closed <- first.Close() }()
	s.OK(errors.Join(second.Close(), <-closed))
})

func TestCrossing(t *testing.T) { runShared(t, crossing) }

// In a window of one rank there is no other rank to disagree with.
func TestUnlikeCallsOfOneRank(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, scripted(func(s *script) {
		for _, c := range collectives[1:] {
			win := allocate[int64](s, 1)
			s.OK(c.make(s.Ctx, win))
			s.OK(win.Fence(s.Ctx, window.NoSucceed))
			s.OK(win.Close())
		}
	})))
}
