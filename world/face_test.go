package world_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A rank has one World of a job, whichever call returns it, and what package window and others find behind it is always the same.
func TestOneWorld(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int](ctx, w, 1)
		if err != nil {
			return err
		}
		team, err := w.Split(ctx, 0, w.Rank())
		if err != nil {
			return err
		}
		of, err := window.Allocate[int](ctx, team, 1)
		if err != nil {
			return err
		}
		switch {
		case win.World() != w:
			return errors.New("the window has another World")
		case of.World() != team || team == w:
			return errors.New("the window of the team has another World")
		case job.Of(team) == job.Of(w) || job.Of(w) != job.Of(win.World()):
			return errors.New("another job is behind a World")
		}
		return errors.Join(of.Close(), win.Close())
	}))
}

// A World that no call has made, and none at all, are errors of calls, and methods without one say so when they panic.
func TestNoWorld(t *testing.T) {
	var none *world.World
	for _, w := range []*world.World{none, new(world.World)} {
		require.ErrorIs(t, w.Barrier(t.Context()), world.ErrArgument)
		require.ErrorIs(t, w.Close(), world.ErrArgument)
		_, err := w.Split(t.Context(), 0, 0)
		require.ErrorIs(t, err, world.ErrArgument)
		_, err = w.Shrink(t.Context())
		require.ErrorIs(t, err, world.ErrArgument)
		require.ErrorIs(t, world.AllReduceOp(t.Context(), w, []int{1}, []int{0}, world.Sum), world.ErrArgument)
		_, err = world.Register(w, []int{1})
		require.ErrorIs(t, err, world.ErrArgument)
		_, err = window.Allocate[int](t.Context(), w, 1)
		require.ErrorIs(t, err, world.ErrArgument)
		require.ErrorIs(t, w.Err(0), world.ErrArgument)
		for name, method := range map[string]func(){
			"Rank": func() { w.Rank() }, "Size": func() { w.Size() }, "Others": func() { w.Others() }, "InJob": func() { w.InJob(0) },
			"Failures": func() { w.Failures() }, "OnFailure": func() { w.OnFailure(nil) }, "Route": func() { w.Route(0) },
			"Mapped": func() { w.Mapped(0) }, "Now": func() { w.Now() }, "Compute": func() { w.Compute(0) }, "Virtual": func() { w.Virtual() },
			"Span": func() { w.Span("", 0, 0) }, "Stats": func() { w.Stats() },
		} {
			require.PanicsWithValue(t, "world: "+name+" of a World that no call of package world has made", method)
		}
	}
}

// A Listener that Listen has not made, and none at all, are errors of calls.
func TestNoListener(t *testing.T) {
	var none *world.Listener
	for _, l := range []*world.Listener{none, new(world.Listener)} {
		require.ErrorIs(t, l.Close(), world.ErrArgument)
		require.PanicsWithValue(t, "world: Addr of a Listener that Listen has not made", func() { l.Addr() })
		require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int](ctx, w, 1, window.Seats(1))
			if err != nil {
				return err
			}
			if err := window.Serve(ctx, l, win.As("a")); !errors.Is(err, world.ErrArgument) || !strings.Contains(err.Error(), "nil Listener") {
				return fmt.Errorf("another error: %w", err)
			}
			return win.Close()
		}))
	}
}

// A nil Server serves nothing.
func TestNoServer(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int](ctx, w, 1, window.Seats(1))
		if err != nil {
			return err
		}
		var server *window.Server
		for _, err := range []error{server.Serve(ctx, l, win.As("a")), server.Evict(ctx, 1, errors.New("enough"))} {
			if !errors.Is(err, world.ErrArgument) || !strings.Contains(err.Error(), "nil Server") {
				return fmt.Errorf("another error: %w", err)
			}
		}
		if server.Sessions() != nil {
			return errors.New("it has sessions")
		}
		return errors.Join(win.Close(), l.Close())
	}))
}

// A registration may be ended twice, and after Close, which ends it; a closed World registers nothing.
func TestRegisterEnds(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 1, func(_ context.Context, w *world.World) error {
		stop, err := world.Register(w, []int{1})
		if err != nil {
			return err
		}
		left, err := world.Register(w, []int{1})
		if err != nil {
			return err
		}
		if err := errors.Join(stop(), stop(), w.Close(), stop(), left()); err != nil {
			return err
		}
		if _, err = world.Register(w, []int{1}); !errors.Is(err, world.ErrClosed) || err.Error() != "world: Register: the World is closed" {
			return fmt.Errorf("after Close: %w", err)
		}
		return nil
	}))
}

// Others begin with the next rank.
func TestOthers(t *testing.T) {
	require.NoError(t, world.Run(t.Context(), 3, func(_ context.Context, w *world.World) error {
		want := [][]int{{1, 2}, {2, 0}, {0, 1}}[w.Rank()]
		if got := slices.Collect(w.Others()); !slices.Equal(got, want) {
			return errors.New("in another order")
		}
		for rank := range w.Others() {
			if rank != want[0] {
				return errors.New("it went on")
			}
			break
		}
		return nil
	}))
}

// Failures that several goroutines notice at once are told in the order of Failures.
func TestFailuresInOrder(t *testing.T) {
	const size = 16
	fault := errors.New("enough")
	for range 100 {
		err := world.Run(t.Context(), size, func(ctx context.Context, w *world.World) error {
			if w.Rank() != 0 {
				return errors.Join(w.Barrier(ctx), fault)
			}
			heard := make(chan *world.PeerError, size)
			defer w.OnFailure(func(err *world.PeerError) { heard <- err })()
			// It may already fail of the first rank that has ended.
			_ = w.Barrier(ctx)
			var told []*world.PeerError
			for range size - 1 {
				told = append(told, <-heard)
			}
			if !slices.Equal(told, w.Failures()) {
				return errors.New("told in another order")
			}
			return nil
		})
		require.ErrorIs(t, err, fault)
		require.NotContains(t, err.Error(), "told in another order")
	}
}

// A failure is told as the error of its rank.
func TestFailures(t *testing.T) {
	fault := errors.New("enough")
	err := world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		if w.Rank() == 2 {
			return fault
		}
		told := make(chan *world.PeerError, 2)
		defer w.OnFailure(func(err *world.PeerError) { told <- err })()
		if len(w.Failures()) == 0 {
			<-told
		}
		all := w.Failures()
		if len(all) == 0 || all[0].Rank != 2 || !errors.Is(w.Err(2), all[0]) || w.Err(w.Rank()) != nil {
			return errors.New("another failure")
		}
		return nil
	})
	require.ErrorIs(t, err, fault)
	require.NotContains(t, err.Error(), "another failure")
}

// Time is real, or that of a simulator.
func TestVirtual(t *testing.T) {
	is := func(want bool) func(context.Context, *world.World) error {
		return func(_ context.Context, w *world.World) error {
			if w.Virtual() != want {
				return errors.New("it is not")
			}
			return nil
		}
	}
	require.NoError(t, world.Run(t.Context(), 1, is(false)))
	profile, err := sim.ByName(sim.Profiles()[0])
	require.NoError(t, err)
	s, err := sim.New(profile, 1)
	require.NoError(t, err)
	require.NoError(t, world.Simulate(t.Context(), s, 1, is(true)))
}

// A hook gets each call of the program once, and no other: not its spans, nor the parts of calls that a trace shows.
func TestHookOfCalls(t *testing.T) {
	profile, err := sim.ByName(sim.Profiles()[0])
	require.NoError(t, err)
	s, err := sim.New(profile, 1)
	require.NoError(t, err)
	calls := make(map[string]int)
	hook := world.WithHook(func(e *world.Event) { calls[e.Call]++ })
	require.NoError(t, world.Simulate(t.Context(), s, 2, func(ctx context.Context, w *world.World) error {
		const size = 2 << 20
		win, err := window.Allocate[byte](ctx, w, size)
		if err != nil {
			return err
		}
		created, err := window.Create(ctx, w, make([]byte, 1))
		if err != nil {
			return err
		}
		// Close of the World closes the team.
		if _, err := w.Split(ctx, 0, 0); err != nil {
			return err
		}
		w.Span("mine", 1, 2)
		err = win.Fence(ctx)
		if err == nil && w.Rank() == 0 {
			err = win.Put(make([]byte, size), 1, 0)
		}
		err = errors.Join(err, win.Fence(ctx, window.NoSucceed), w.Barrier(ctx), win.Close(), created.Close())
		small, failed := w.Shrink(ctx)
		if err = errors.Join(err, failed); err != nil {
			return err
		}
		return errors.Join(small.Close(), w.Close(), w.Close())
	}, hook))
	require.Equal(t, map[string]int{
		"Allocate": 2, "Create": 2, "Split": 2, "Fence": 4, "Put": 1, "Barrier": 2, "Shrink": 2, "Close": 10,
	}, calls)
}

// One hook serves all ranks of Run, in the job and in teams. Each event has the number in the job of the rank that made the call.
func TestHookOfRanks(t *testing.T) {
	const n = 4
	var mu sync.Mutex
	ranks := make(map[string][]int)
	hook := world.WithHook(func(e *world.Event) {
		if e.Call == "Barrier" || e.Call == "Fence" || e.Call == "Put" {
			mu.Lock()
			defer mu.Unlock()
			ranks[e.Call] = append(ranks[e.Call], e.Rank)
		}
	})
	require.NoError(t, world.Run(t.Context(), n, func(ctx context.Context, w *world.World) error {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		// The members of each team have other numbers in it than in the job.
		team, err := w.Split(ctx, w.Rank()%2, -w.Rank())
		if err != nil {
			return err
		}
		win, err := window.Allocate[int64](ctx, team, 1)
		if err != nil {
			return err
		}
		return errors.Join(win.Fence(ctx), win.Put([]int64{1}, team.Rank(), 0), win.Fence(ctx, window.NoSucceed), win.Close(), team.Close())
	}, hook))
	for call := range ranks {
		slices.Sort(ranks[call])
	}
	require.Equal(t, map[string][]int{"Barrier": {0, 1, 2, 3}, "Put": {0, 1, 2, 3}, "Fence": {0, 0, 1, 1, 2, 2, 3, 3}}, ranks)
}

// A rank that a World does not have is no panic, before and after a failure.
func TestNoRank(t *testing.T) {
	fault := errors.New("enough")
	err := world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		team, err := w.Split(ctx, 0, 0)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			return fault
		}
		look := func() error {
			for _, of := range []*world.World{w, team} {
				for _, rank := range []int{-1, 2} {
					if of.InJob(rank) != -1 || of.Route(rank) != "" || of.Mapped(rank) || !errors.Is(of.Err(rank), world.ErrArgument) {
						return errors.New("it has this rank")
					}
				}
			}
			return nil
		}
		early := look()
		failed := make(chan *world.PeerError, 1)
		defer w.OnFailure(func(err *world.PeerError) { failed <- err })()
		if len(w.Failures()) == 0 {
			<-failed
		}
		return errors.Join(early, look())
	})
	require.ErrorIs(t, err, fault)
	require.NotContains(t, err.Error(), "it has this rank")
}

// What programs read of the errors, whose types are in package job.
var (
	_ = struct {
		Rank  int
		Op    string
		Cause error
	}(world.PeerError{})
	_ = struct {
		Rank  int
		Cause error
	}(world.RankError{})
	_ = struct {
		Rank int
		Text string
	}(world.RejectionError{})
)

// Stats has every count of package job.
func TestStatsAreComplete(t *testing.T) {
	require.Equal(t, reflect.TypeFor[job.Stats]().NumField(), reflect.TypeFor[world.Stats]().NumField())
}
