package window_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Requests on all other ranks are waited for together: all of them, any of them, and one after the other.
var requestsTogether = registerShared("requests together", []int{3}, func(s *script) {
	n, me := s.World.Size(), s.World.Rank()
	const each = 40
	win := allocate[int64](s, n*each)
	fill(win.Local(), me)
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.LockAll(s.Ctx))
	into := make([]int64, n*each)
	gets := func() (all []window.Request) {
		fill(into, -1)
		for i := range into {
			r, err := win.RGet(into[i:i+1], i%n, i)
			s.OK(err)
			all = append(all, r)
		}
		return all
	}
	read := func(what string) {
		for i, got := range into {
			s.Check(got == int64(i%n), "%s: get %d of rank %d has read %d", what, i, i%n, got)
		}
	}
	s.OK(window.WaitAll(s.Ctx, gets()...))
	read("WaitAll")

	left := gets()
	for len(left) > 0 {
		i, err := window.WaitAny(s.Ctx, left...)
		s.OK(err)
		left = slices.Delete(left, i, i+1)
	}
	read("WaitAny")

	seen := make([]int, n*each)
	for i, err := range window.Completed(s.Ctx, gets()...) {
		s.OK(err)
		s.Check(into[i] == int64(i%n), "Completed: get %d has read %d", i, into[i])
		seen[i]++
	}
	s.Check(!slices.ContainsFunc(seen, func(n int) bool { return n != 1 }), "Completed has yielded %v", seen)

	// What is left of a loop that has ended early is waited for later.
	all := gets()
	for range window.Completed(s.Ctx, all...) {
		break
	}
	s.OK(window.WaitAll(s.Ctx, all...))
	read("after a break")

	origin := []int64{int64(me)}
	s.OK(win.Put(origin, (me+1)%n, me))
	flush, err := win.RFlush((me + 1) % n)
	s.OK(err)
	s.OK(window.WaitAll(s.Ctx, flush, window.Request{}))
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(win.Close())
})

func TestRequestsTogether(t *testing.T) { runShared(t, requestsTogether) }

// An ended context cuts the calls short, and what is incomplete can be waited for again.
func TestRequestsCutShort(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			if err := win.Lock(ctx, window.Exclusive, 1); err != nil {
				return err
			}
			if err := win.Flush(ctx, 1); err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			if err := win.Lock(ctx, window.Shared, 1); err != nil {
				return err
			}
			into := make([]int64, 1)
			get, err := win.RGet(into, 1, 0)
			if err != nil {
				return err
			}
			if err := window.WaitAll(over, get); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("WaitAll: %w", err)
			}
			// A context that was cancelled for the failure of a rank says nothing of others.
			lost, cancel := context.WithCancelCause(ctx)
			cancel(&world.PeerError{Rank: 0, Cause: errors.New("gone")})
			for name, err := range map[string]error{"WaitAll": window.WaitAll(lost, get), "Wait": get.Wait(lost), "Flush": win.Flush(lost, 1)} {
				if !errors.Is(err, context.Canceled) {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			if i, err := window.WaitAny(over, get); i != -1 || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("WaitAny: %d, %w", i, err)
			}
			for i, err := range window.Completed(over, get) {
				if i != -1 || !errors.Is(err, context.Canceled) {
					return fmt.Errorf("Completed: %d, %w", i, err)
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if err := errors.Join(window.WaitAll(ctx, get), win.Unlock(ctx, 1)); err != nil || into[0] != 7 {
				return fmt.Errorf("%d, %w", into[0], err)
			}
			return win.Close()
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		win.Local()[0] = 7
		return errors.Join(win.Unlock(ctx, 1), win.Close())
	}, world.WithDevice("tcp")))
}

// A request of a rank that fails is one of the errors, and the others complete.
func TestRequestsOfTheDead(t *testing.T) {
	died := errors.New("enough")
	var failure, alive error
	var reached, done bool
	err := world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		origin, err := win.Group(0)
		if err == nil && w.Rank() == 1 {
			err = win.Post(ctx, origin)
		}
		if err := errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		switch w.Rank() {
		case 1:
			return win.Wait(ctx)
		case 2:
			return died
		}
		targets, err := win.Group(1, 2)
		if err := errors.Join(err, win.Start(ctx, targets)); err != nil {
			return err
		}
		into := make([]int64, 2)
		lives, err := win.RGet(into[:1], 1, 0)
		if err != nil {
			return err
		}
		dies, err := win.RGet(into[1:], 2, 0)
		if err != nil {
			return err
		}
		reached, failure = true, window.WaitAll(ctx, dies, lives)
		done, alive = lives.Test()
		_ = win.Complete(ctx)
		return nil
	}, world.WithDevice("tcp"))
	require.ErrorIs(t, err, died)
	require.True(t, reached)
	var failed *world.PeerError
	require.ErrorAs(t, failure, &failed)
	require.Equal(t, 2, failed.Rank)
	require.NotContains(t, failure.Error(), "Request.Test")
	require.NoError(t, alive)
	require.True(t, done)
}

// A call that waits for a request sends the operations on other ranks, too: here rank 1 posts only when rank 2 has what rank 0
// has put there.
var waitsForRequest = map[string]func(ctx context.Context, get, put window.Request) error{
	"WaitAll":        func(ctx context.Context, get, _ window.Request) error { return window.WaitAll(ctx, get) },
	"WaitAll of two": func(ctx context.Context, get, put window.Request) error { return window.WaitAll(ctx, get, put) },
	"WaitAny": func(ctx context.Context, get, _ window.Request) error {
		_, err := window.WaitAny(ctx, get)
		return err
	},
	"Completed": func(ctx context.Context, get, _ window.Request) (err error) {
		for _, failed := range window.Completed(ctx, get) {
			err = errors.Join(err, failed)
		}
		return err
	},
}

func TestRequestsSend(t *testing.T) {
	for name, wait := range waitsForRequest {
		t.Run(name, func(t *testing.T) {
			seen, waits := make(chan struct{}), make(chan struct{})
			require.NoError(t, world.Run(t.Context(), 3, scripted(func(s *script) {
				win := allocate[int64](s, 1)
				origins := groupOf(s, win, 0)
				// For the second request to stay until WaitAll waits, rank 2 posts as late as that.
				late := name == "WaitAll of two"
				if s.World.Rank() == 2 && !late {
					s.OK(win.Post(s.Ctx, origins))
				}
				s.OK(s.World.Barrier(s.Ctx))
				switch s.World.Rank() {
				case 0:
					s.OK(win.Start(s.Ctx, groupOf(s, win, 1, 2)))
					put, err := win.RPut([]int64{7}, 2, 0)
					s.OK(err)
					get, err := win.RGet(make([]int64, 1), 1, 0)
					s.OK(err)
					close(waits)
					s.OK(wait(s.Ctx, get, put))
					s.OK(win.Complete(s.Ctx))
				case 1:
					await.Closed(t, "the Put", seen)
					s.OK(win.Post(s.Ctx, origins))
					s.OK(win.Wait(s.Ctx))
				case 2:
					if late {
						await.Closed(t, "the wait", waits)
						s.OK(await.UntilParked(s.Ctx, "window.WaitAll", 1))
						s.OK(win.Post(s.Ctx, origins))
					}
					s.Await("the Put", func() bool { return win.Sync() == nil && atomic.LoadInt64(&win.Local()[0]) == 7 })
					close(seen)
					s.OK(win.Wait(s.Ctx))
				}
				s.OK(win.Close())
			}), world.WithDevice("tcp")))
		})
	}
}

// A loop over Completed may compute for longer than a wait may last.
func TestCompletedComputes(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	require.NoError(t, world.Simulate(t.Context(), s, 3, scripted(func(s *script) {
		win := allocate[int64](s, 1)
		if s.World.Rank() == 1 {
			s.OK(win.LockNow(s.Ctx, window.Exclusive, 1))
		}
		s.OK(s.World.Barrier(s.Ctx))
		switch s.World.Rank() {
		case 0:
			s.OK(win.Lock(s.Ctx, window.Shared, 1))
			get, err := win.RGet(make([]int64, 1), 1, 0)
			s.OK(err)
			for _, err := range window.Completed(s.Ctx, get) {
				s.OK(err)
				s.World.Compute(5 * time.Second)
			}
			s.OK(win.Unlock(s.Ctx, 1))
		case 1:
			s.World.Compute(20 * time.Millisecond)
			s.OK(win.Unlock(s.Ctx, 1))
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.Close())
	}), world.WithStartTimeout(time.Second)))
}

// A request of a World that is closed does not end the wait for those of others.
func TestCompletedOfTeams(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		team, err := s.World.Split(s.Ctx, 0, 0)
		s.OK(err)
		closing, err := window.Allocate[int64](s.Ctx, team, 1)
		s.OK(err)
		open := allocate[int64](s, 1)
		open.Local()[0] = 7
		if s.World.Rank() == 1 {
			s.OK(closing.LockNow(s.Ctx, window.Exclusive, 1))
			s.OK(open.LockNow(s.Ctx, window.Exclusive, 1))
		}
		s.OK(s.World.Barrier(s.Ctx))
		into := make([]int64, 2)
		var lost window.Request
		if s.World.Rank() == 0 {
			s.OK(closing.Lock(s.Ctx, window.Shared, 1))
			lost, err = closing.RGet(into[:1], 1, 0)
			s.OK(err)
		}
		_ = team.Close()
		if s.World.Rank() == 1 {
			s.OK(await.UntilParked(s.Ctx, "window.(*pending).completed", 1))
			s.OK(open.Unlock(s.Ctx, 1))
			s.OK(s.World.Barrier(s.Ctx))
			return
		}
		s.OK(open.Lock(s.Ctx, window.Shared, 1))
		kept, err := open.RGet(into[1:], 1, 0)
		s.OK(err)
		var got []int
		for i, err := range window.Completed(s.Ctx, lost, kept) {
			got = append(got, i)
			s.Check((err == nil) == (i == 1), "request %d: %v", i, err)
		}
		s.Check(slices.Equal(got, []int{0, 1}) && into[1] == 7, "yields %v, read %v", got, into)
		s.OK(open.Unlock(s.Ctx, 1))
		s.OK(s.World.Barrier(s.Ctx))
	}), world.WithDevice("tcp")))
}

// Before Completed yields a request it has sent the operations of all.
func TestCompletedSendsAll(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 3, scripted(func(s *script) {
		win := allocate[int64](s, 1)
		s.OK(win.LockAll(s.Ctx))
		s.OK(s.World.Barrier(s.Ctx))
		if s.World.Rank() == 0 {
			into := make([]int64, 3)
			var gets []window.Request
			for rank := range into {
				get, err := win.RGet(into[rank:rank+1], rank, 0)
				s.OK(err)
				gets = append(gets, get)
			}
			sent := func() uint64 {
				stats := win.Stats()
				return uint64(stats.Direct.Operations() + stats.Packed.Operations())
			}
			before := sent()
			for _, err := range window.Completed(s.Ctx, gets...) {
				s.OK(err)
				s.Check(sent() == before+2, "%d of 2 operations are sent", sent()-before)
			}
		}
		s.OK(s.World.Barrier(s.Ctx))
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.Close())
	}), world.WithDevice("tcp")))
}

// Waiting for complete requests allocates nothing.
func TestWaitAllAllocates(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, scripted(func(s *script) {
		win := allocate[int64](s, 2)
		s.OK(win.LockAll(s.Ctx))
		into := make([]int64, 2)
		s.Check(testing.AllocsPerRun(100, func() {
			first, err := win.RGet(into[:1], 0, 0)
			s.OK(err)
			second, err := win.RGet(into[1:], 0, 1)
			s.OK(err)
			s.OK(window.WaitAll(s.Ctx, first, second))
		}) == 0, "WaitAll allocates")
		s.OK(win.UnlockAll(s.Ctx))
		s.OK(win.Close())
	})))
}

// WaitAll takes no longer than a loop of Wait.
func BenchmarkWaitAll(b *testing.B) {
	const n = 1000
	for name, wait := range map[string]func(ctx context.Context, all []window.Request) error{
		"WaitAll": func(ctx context.Context, all []window.Request) error { return window.WaitAll(ctx, all...) },
		"Wait": func(ctx context.Context, all []window.Request) (err error) {
			for _, r := range all {
				err = errors.Join(err, r.Wait(ctx))
			}
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			require.NoError(b, world.Run(b.Context(), 2, scripted(func(s *script) {
				win := allocate[int64](s, n)
				s.OK(win.LockAll(s.Ctx, window.NoCheck))
				s.OK(s.World.Barrier(s.Ctx))
				if s.World.Rank() == 0 {
					into, all := make([]int64, n), make([]window.Request, n)
					b.ReportAllocs()
					for b.Loop() {
						for i := range all {
							r, err := win.RGet(into[i:i+1], 1, i)
							s.OK(err)
							all[i] = r
						}
						s.OK(wait(s.Ctx, all))
					}
				}
				s.OK(s.World.Barrier(s.Ctx))
				s.OK(win.UnlockAll(s.Ctx))
				s.OK(win.Close())
			}), world.WithDevice("tcp")))
		})
	}
}

// Wrong arguments.
func TestRequestsArguments(t *testing.T) {
	require.NoError(t, window.WaitAll(t.Context()))
	i, err := window.WaitAny(t.Context())
	require.Equal(t, -1, i)
	require.ErrorIs(t, err, window.ErrArgument)
	require.EqualError(t, err, "window: WaitAny: invalid argument: no requests")
	i, err = window.WaitAny(t.Context(), window.Request{})
	require.Zero(t, i)
	require.NoError(t, err)
	for i, err := range window.Completed(none) {
		require.Equal(t, -1, i)
		require.ErrorIs(t, err, window.ErrArgument)
	}
}

// Results are used in the order in which they come.
func ExampleCompleted() {
	err := world.Run(context.Background(), 4, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		win.Local()[0] = int64(w.Rank())
		if err := win.Fence(ctx, window.NoPrecede); err != nil {
			return err
		}
		if w.Rank() == 0 {
			sum, from := int64(0), make([]int64, w.Size())
			var gets []window.Request
			for rank := range w.Size() {
				get, err := win.RGet(from[rank:rank+1], rank, 0)
				if err != nil {
					return err
				}
				gets = append(gets, get)
			}
			for rank, err := range window.Completed(ctx, gets...) {
				if err != nil {
					return err
				}
				sum += from[rank]
			}
			fmt.Println(sum)
		}
		if err := win.Fence(ctx, window.NoSucceed); err != nil {
			return err
		}
		return win.Close()
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 6
}

// The error of a wait for a request names that call, in its text and where programs read it.
func TestErrorsNameWait(t *testing.T) {
	waits := map[string]func(ctx context.Context, r window.Request) error{
		"Request.Wait": func(ctx context.Context, r window.Request) error { return r.Wait(ctx) },
		"WaitAll":      func(ctx context.Context, r window.Request) error { return window.WaitAll(ctx, r) },
		"WaitAny": func(ctx context.Context, r window.Request) error {
			_, err := window.WaitAny(ctx, r)
			return err
		},
		"Completed": func(ctx context.Context, r window.Request) (err error) {
			for _, err = range window.Completed(ctx, r) {
			}
			return err
		},
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, wait := range waits {
		err := world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int64](ctx, w, 1)
			if err != nil || w.Rank() == 1 {
				return errors.Join(err, w.Barrier(ctx), w.Close())
			}
			into := make([]int64, 1)
			if err := win.Start(ctx, group(1)); err != nil {
				return err
			}
			get, err := win.RGet(into, 1, 0)
			if err != nil {
				return err
			}
			cut := wait(over, get)
			if !errors.Is(cut, context.Canceled) || !strings.HasPrefix(cut.Error(), "window: "+name+": ") {
				return fmt.Errorf("cut short, it is not %s: %w", name, cut)
			}
			err = errors.Join(w.Barrier(ctx), wait(ctx, get))
			var lost *world.PeerError
			if !errors.As(err, &lost) || lost.Op != "window."+name || err.Error() != "window: "+name+": rank 1 has left the job, or the team" {
				return fmt.Errorf("%s: %w", name, err)
			}
			return w.Close()
		}, world.WithDevice("tcp"), world.WithAddress("127.0.0.1"))
		require.NoError(t, err)
	}
}
