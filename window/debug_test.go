package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Each misuse is found by the call that shows it, which names the places of both.
func TestMisuse(t *testing.T) {
	buffer := []int64{1, 2, 3, 4}
	for _, c := range []struct {
		name string
		// do is what rank 0 does, between LockAll and UnlockAll.
		do   func(ctx context.Context, win *window.Window[int64]) error
		what string
	}{
		{"two puts", func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Put(buffer[:2], 1, 0), win.Put(buffer[2:3], 1, 1))
		}, "bytes 8 to 15 of rank 1 are in use in one epoch: Put at "},
		{"a put and a get", func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Put(buffer[:2], 1, 0), win.Get(make([]int64, 2), 1, 0))
		}, "in use in one epoch: Put at "},
		{"a get and an accumulate", func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Get(make([]int64, 2), 1, 0), win.Accumulate(window.Sum, []int64{1}, 1, 0))
		}, "in use in one epoch: Get at "},
		{"a put and a swap, of bytes", func(ctx context.Context, win *window.Window[int64]) error {
			bytes, err := window.View[uint8](win)
			if err != nil {
				return err
			}
			var was int64
			return errors.Join(bytes.Put([]byte{1}, 1, 15), win.CompareAndSwap(0, 1, &was, 1, 1))
		}, "bytes 15 to 15 of rank 1"},
		{"a result that is asked for twice", func(ctx context.Context, win *window.Window[int64]) error {
			result := make([]int64, 2)
			return errors.Join(win.Get(result, 1, 0), win.Get(result[1:], 1, 5))
		}, "two operations read into the same memory, and the first was not complete: "},
		{"a put of what is not there yet", func(ctx context.Context, win *window.Window[int64]) error {
			result := make([]int64, 2)
			return errors.Join(win.Get(result, 1, 0), win.Put(result, 1, 4))
		}, "a put writes from memory that an earlier operation reads into, before that operation was complete: "},
		{"an origin that is written to", func(ctx context.Context, win *window.Window[int64]) error {
			result := make([]int64, 2)
			return errors.Join(win.Put(result, 1, 0), win.Get(result, 1, 4))
		}, "an operation reads into memory that a put writes from, before the put was complete: "},
		{"an origin that is changed", func(ctx context.Context, win *window.Window[int64]) error {
			origin := []int64{1}
			err := win.Put(origin, 1, 0)
			origin[0] = 2
			return errors.Join(err, win.Flush(ctx, 1))
		}, "the memory that a put writes from was changed before the operation was complete: Put at "},
		{"an origin that is changed for another put, and back", func(ctx context.Context, win *window.Window[int64]) error {
			origin := []int64{1}
			err := win.Put(origin, 1, 0)
			origin[0] = 2
			err = errors.Join(err, win.Put(origin, 1, 1))
			origin[0] = 1
			return errors.Join(err, win.Flush(ctx, 1))
		}, "the memory that a put writes from was changed before the operation was complete: Put at "},
		{"an origin that is changed when one of two puts has given it back", func(ctx context.Context, win *window.Window[int64]) error {
			origin := []int64{1}
			err := win.Put(origin, 1, 0)
			request, failed := win.RPut(origin, 1, 1)
			err = errors.Join(err, failed, request.Wait(ctx))
			origin[0] = 2
			return errors.Join(err, win.Flush(ctx, 1))
		}, "the memory that a put writes from was changed before the operation was complete: Put at "},
		{"an origin that is changed behind another put of it that was refused", func(ctx context.Context, win *window.Window[int64]) error {
			origin := []int64{1}
			err := win.Put(origin, 1, 0)
			if _, refused := win.RPut(origin, 1, 200); refused == nil {
				return errors.New("a put beyond the window")
			}
			origin[0] = 2
			return errors.Join(err, win.Flush(ctx, 1))
		}, "the memory that a put writes from was changed before the operation was complete: Put at "},
		{"a result that is stored into", func(ctx context.Context, win *window.Window[int64]) error {
			result := make([]int64, 2)
			err := win.Get(result, 1, 0)
			result[1] = 3
			return errors.Join(err, win.FlushLocal(ctx, 1))
		}, "memory that an operation reads into was changed before the operation was complete: Get at "},
		{"a put within one of many gets", func(ctx context.Context, win *window.Window[int64]) error {
			var errs []error
			for i := range 50 {
				errs = append(errs, win.Get(make([]int64, 1+i), 1, i))
			}
			return errors.Join(append(errs, win.Put(buffer[:1], 1, 97))...)
		}, "bytes 776 to 783 of rank 1 are in use in one epoch: Get at "},
		{"another rank's put", func(ctx context.Context, win *window.Window[int64]) error {
			return win.Put(buffer[:1], 1, 100)
		}, "bytes 800 to 807 of rank 1"},
	} {
		t.Run(c.name, func(t *testing.T) { misused(t, c.do, c.what, world.WithDebug()) })
	}
}

// An operation issued after a flush with a request is not completed by it.
func TestMisuseBehindRFlush(t *testing.T) {
	buffer := []int64{1, 2}
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, win *window.Window[int64]) error
		what string
	}{
		{"two puts", func(ctx context.Context, win *window.Window[int64]) error {
			err := win.Put(buffer[:1], 1, 0)
			r, failed := win.RFlush(1)
			return errors.Join(err, failed, win.Put(buffer[:1], 1, 1), r.Wait(ctx), win.Put(buffer[1:], 1, 0), win.Put(buffer[1:], 1, 1))
		}, "bytes 8 to 15 of rank 1 are in use in one epoch: Put at "},
		{"an origin that is changed", func(ctx context.Context, win *window.Window[int64]) error {
			first, second := []int64{1}, []int64{1}
			err := win.Put(first, 1, 0)
			r, failed := win.RFlush(1)
			err = errors.Join(err, failed, win.Put(second, 1, 1), r.Wait(ctx))
			first[0], second[0] = 2, 2
			return errors.Join(err, win.Flush(ctx, 1))
		}, "the memory that a put writes from was changed before the operation was complete: Put at "},
		{"an accumulate again", func(ctx context.Context, win *window.Window[int64]) error {
			err := win.Accumulate(window.Sum, buffer[:1], 1, 0)
			r, failed := win.RFlush(1)
			return errors.Join(err, failed, win.Accumulate(window.Sum, buffer[:1], 1, 0), r.Wait(ctx), win.Put(buffer[:1], 1, 0))
		}, "bytes 0 to 7 of rank 1 are in use in one epoch: Accumulate at "},
		{"an origin that is changed when it was put again", func(ctx context.Context, win *window.Window[int64]) error {
			origin := []int64{1}
			err := win.Put(origin, 1, 0)
			r, failed := win.RFlush(1)
			err = errors.Join(err, failed, win.Put(origin, 1, 1), r.Wait(ctx))
			origin[0] = 2
			return errors.Join(err, win.Flush(ctx, 1))
		}, "the memory that a put writes from was changed before the operation was complete: Put at "},
		{"a put of what is not there yet", func(ctx context.Context, win *window.Window[int64]) error {
			result := make([]int64, 2)
			r, err := win.RFlush(1)
			return errors.Join(err, win.Get(result, 1, 0), r.Wait(ctx), win.Put(result, 1, 4))
		}, "a put writes from memory that an earlier operation reads into, before that operation was complete: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			misused(t, c.do, c.what, append(jobtest.OptionsApart(), world.WithDebug())...)
		})
	}
}

// An operation that was rejected after a flush with a request makes nothing wait for another flush.
func TestNoMisuseWithWhatIsRefusedBehindRFlush(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		win := allocate[int64](s, 20)
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		if s.World.Rank() == 0 {
			origin := []int64{1}
			s.OK(win.Put(origin, 1, 0))
			s.OK(win.Accumulate(window.Sum, []int64{1}, 1, 1))
			s.OK(win.Put([]int64{2}, 1, 2))
			r, err := win.RFlush(1)
			s.OK(err)
			s.Fails(win.Put(origin, 1, 2), window.ErrMisuse)
			s.Fails(win.Put(origin, 1, 20), window.ErrRange)
			s.Fails(win.Put(origin, 0, 0), epoch.ErrNoEpoch)
			s.Fails(win.Accumulate(window.Sum, origin, 0, 1), epoch.ErrNoEpoch)
			s.OK(r.Wait(s.Ctx))
			origin[0] = 2
			s.OK(win.Put([]int64{3}, 1, 1))
			s.OK(win.Flush(s.Ctx, 1))
		}
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.Close())
	}), append(jobtest.OptionsApart(), world.WithDebug())...))
}

// misused has rank 0 do what is misuse, between LockAll and UnlockAll.
func misused(t *testing.T, do func(ctx context.Context, win *window.Window[int64]) error, what string, options ...world.Option) {
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 200)
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		if w.Rank() == 1 {
			err = win.Put([]int64{5}, 1, 100)
		}
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			err := do(ctx, win)
			require.ErrorIs(t, err, window.ErrMisuse)
			require.ErrorContains(t, err, what)
			var misuse *window.MisuseError
			require.ErrorAs(t, err, &misuse)
			require.Regexp(t, `debug_test\.go:\d+$`, misuse.First)
			require.Regexp(t, `debug_test\.go:\d+$`, misuse.Second)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		return errors.Join(win.UnlockAll(ctx), win.Close())
	}, options...))
}

// What is allowed is not taken for misuse.
func TestNoMisuse(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		win := allocate[int64](s, 10)
		other, result, again := 1-s.World.Rank(), make([]int64, 2), make([]int64, 1)
		for range 3 {
			// In fences, each rank's put is in another place, and the next epoch's in the same.
			s.OK(win.Fence(s.Ctx))
			s.OK(win.Put([]int64{1}, other, s.World.Rank()))
			s.OK(win.Accumulate(window.Sum, []int64{1}, 0, 5))
			s.OK(win.FetchAndOp(window.Sum, 1, &again[0], 0, 5))
			s.OK(win.Fence(s.Ctx))
			s.OK(win.Put([]int64{1}, other, 1-s.World.Rank()))
			s.OK(win.Fence(s.Ctx, window.NoSucceed))
			s.OK(win.LockAll(s.Ctx))
			s.OK(win.Get(result, other, 8))
			s.OK(win.Get(again, other, 9))
			s.OK(win.FlushLocal(s.Ctx, other))
			s.Check(result[0] == 0 && again[0] == 0, "results are %v, %v", result, again)
			s.OK(win.Get(result, other, 8))
			s.OK(win.Flush(s.Ctx, other))
			s.OK(s.World.Barrier(s.Ctx))
			if s.World.Rank() == 0 {
				s.OK(win.Put(result, other, 8))
				request, err := win.RGet(again, other, 4)
				s.OK(err)
				s.OK(request.Wait(s.Ctx))
				again[0] = 7
				origin := []int64{1}
				request, err = win.RPut(origin, other, 3)
				s.OK(err)
				s.OK(request.Wait(s.Ctx))
				origin[0] = 2
				origin = []int64{1}
				s.OK(win.Put(origin, 0, 2))
				request, err = win.RPut(origin, other, 2)
				s.OK(err)
				s.OK(request.Wait(s.Ctx))
				s.OK(win.Flush(s.Ctx, 0))
				origin[0] = 2
			}
			s.OK(win.UnlockAll(s.Ctx))
			s.Check(win.Put([]int64{1}, other, 0) != nil, "a put outside of an epoch")
			s.OK(s.World.Barrier(s.Ctx))
		}
		s.OK(win.Close())
	}), world.WithDebug()))
}

// A get that has its result, by a FlushLocal or by its Request, meets nothing that comes later; one that
// has it not does.
func TestNoMisuseBehindResult(t *testing.T) {
	for way, options := range map[string][]world.Option{"mapped": nil, "apart": jobtest.OptionsApart()} {
		t.Run(way, func(t *testing.T) {
			require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
				win := allocate[int64](s, 8)
				if s.World.Rank() == 0 {
					v := make([]int64, 1)
					s.OK(win.Lock(s.Ctx, window.Exclusive, 1))
					for _, wait := range []bool{true, false} {
						r, err := win.RGet(v, 1, 0)
						s.OK(err)
						finish(s, r, wait)
						s.OK(r.Wait(s.Ctx))
						v[0]++
						s.OK(win.Put(v, 1, 0))
						s.OK(win.Flush(s.Ctx, 1))
					}
					s.OK(win.Get(v, 1, 0))
					s.OK(win.FlushLocal(s.Ctx, 1))
					s.Check(v[0] == 2, "read %d", v[0])
					s.OK(win.Put([]int64{3}, 1, 0))
					s.OK(win.FlushLocal(s.Ctx, 1))
					s.Fails(win.Get(v, 1, 0), window.ErrMisuse)
					s.OK(win.Get(v, 1, 1))
					s.Fails(win.Put([]int64{3}, 1, 1), window.ErrMisuse)
					s.OK(win.Unlock(s.Ctx, 1))
				}
				s.OK(win.Close())
			}), append(options, world.WithDebug())...))
		})
	}
}

// What is refused is not met by what comes later, nor is its buffer.
func TestNoMisuseWithWhatIsRefused(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[int64](s, 4)
		origin, result := []int64{1}, []int64{1}
		s.Fails(win.Put(origin, 0, 0), epoch.ErrNoEpoch)
		s.Fails(win.PutNotify(origin, 0, 1, 0), epoch.ErrNoEpoch)
		s.Fails(win.Get(result, 0, 2), epoch.ErrNoEpoch)
		origin[0] = 2
		s.OK(win.LockAll(s.Ctx))
		s.OK(win.Accumulate(window.Sum, []int64{1}, 0, 0))
		s.Fails(win.Get(result, 0, 0), window.ErrMisuse)
		s.OK(win.Put([]int64{3}, 0, 1))
		s.OK(win.Put(result, 0, 2))
		s.Fails(win.Get(origin, 0, 1), window.ErrMisuse)
		s.OK(win.Get(origin, 0, 3))
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.Close())
	}), world.WithDebug()))
}

// What is refused as misuse does not settle which operation a window made with SameOp has.
func TestMisuseSettlesNoOp(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, scripted(func(s *script) {
		win, err := window.Allocate[int64](s.Ctx, s.World, 4, window.SameOp())
		s.OK(err)
		s.OK(win.LockAll(s.Ctx))
		s.OK(win.Put([]int64{1}, 0, 0))
		s.Fails(win.Accumulate(window.Sum, []int64{1}, 0, 0), window.ErrMisuse)
		s.OK(win.Accumulate(window.Max, []int64{1}, 0, 1))
		s.Fails(win.Accumulate(window.Sum, []int64{1}, 0, 2), window.ErrPromise)
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.Close())
	}), world.WithDebug()))
}

// The error of closing a window too early names the calls that have opened what is open.
func TestOpeners(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		win := allocate[int64](s, 1)
		group := groupOf(s, win, 0)
		opened := func(calls string) {
			err := win.Close()
			s.Check(errors.Is(err, epoch.ErrEpochOpen), "Close: %v", err)
			require.Regexp(t, `; opened by `+calls+`$`, err)
		}
		lock := func(target int) { s.OK(win.Lock(s.Ctx, window.Shared, target)) }
		const at = ` at \S+debug_test\.go:\d+`
		s.OK(win.Fence(s.Ctx))
		opened("Fence" + at)
		s.OK(win.Fence(s.Ctx, window.NoSucceed))
		lock(0)
		lock(1)
		opened("Lock" + at)
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.Lock(s.Ctx, window.Shared, 1))
		opened("Lock" + at + ", Lock" + at)
		s.OK(win.Unlock(s.Ctx, 0))
		opened("Lock" + at)
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.LockNow(s.Ctx, window.Shared, 1))
		opened("LockNow" + at)
		s.OK(win.Unlock(s.Ctx, 1))
		s.OK(win.LockAll(s.Ctx))
		opened("LockAll" + at)
		s.OK(win.UnlockAll(s.Ctx))
		if s.World.Rank() == 0 {
			s.OK(win.Post(s.Ctx, group))
			opened("Post" + at)
			s.OK(win.Start(s.Ctx, group))
			opened("Start" + at + ", Post" + at)
			s.OK(win.Complete(s.Ctx))
			opened("Post" + at)
			s.OK(win.Wait(s.Ctx))
		}
		s.OK(win.Close())
	}), world.WithDebug()))
}

// A World that is closed with an epoch of a window open says so, unless a rank has failed.
func TestEpochLeftOpen(t *testing.T) {
	left := func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			err = win.Lock(ctx, window.Shared, 1)
		}
		return errors.Join(err, w.Barrier(ctx))
	}
	err := world.Run(t.Context(), 2, left, world.WithDebug())
	var misuse *window.MisuseError
	require.ErrorAs(t, err, &misuse)
	require.Equal(t, 1, misuse.FirstRank)
	require.Regexp(t, `an epoch is left open: Lock at \S+debug_test\.go:\d+ of rank 1, and Close of the World of rank 1$`, err)
	require.NoError(t, world.Run(t.Context(), 2, left))
	own := errors.New("own")
	err = world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		return errors.Join(left(ctx, w), own)
	}, world.WithDebug())
	require.ErrorIs(t, err, own)
	require.NotErrorIs(t, err, window.ErrMisuse)
}

// No error reports an epoch that is left open because another rank has left.
func TestEpochOfALeaver(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		win := allocate[int64](s, 1)
		s.OK(s.World.Barrier(s.Ctx))
		if s.World.Rank() == 1 {
			return
		}
		other, err := win.Group(1)
		s.OK(err)
		s.OK(win.Post(s.Ctx, other))
		s.Fails(win.Start(s.Ctx, other), world.ErrLeft)
	}), world.WithDebug()))
}

// A result that is read too early is poison, also where its target is mapped; it is there when the call has ended that
// completes it.
func TestPoison(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[uint32](s, 4)
		win.Local()[2] = 5
		var was uint32
		result := []uint32{1, 1}
		s.OK(win.Lock(s.Ctx, window.Exclusive, 0))
		s.OK(win.Get(result, 0, 1))
		s.OK(win.FetchAndOp(window.Sum, 1, &was, 0, 3))
		s.Check(result[1] == 0xdbdbdbdb && was == 0xdbdbdbdb, "read early %x, %x", result, was)
		s.Fails(win.Close(), epoch.ErrEpochOpen)
		err := win.Close()
		require.ErrorContains(t, err, "; opened by Lock at ")
		require.ErrorContains(t, err, "debug_test.go:")
		s.OK(win.Unlock(s.Ctx, 0))
		s.Check(result[1] == 5 && was == 0, "read %v, %v", result, was)
		s.OK(win.Close())
	}), world.WithDebug()))
}
