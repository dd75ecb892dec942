// Package docs_test keeps what is printed into the documents of this directory.
package docs_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/examples/globalarray"
	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/hashtable"
	internal "github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

var rewrite = flag.Bool("rewrite", false, "rewrite misuse.md")

const misuseHead = `# Every wrong call and its error

This page is for readers who look up an error text. A call that a rank can see to be wrong is an error at the call, and changes nothing.
One exception: Close after a Start that no Post has matched returns ` + "`window.ErrNotPosted`" + `, and the window is closed.

Each section says what is open when its calls are made. The job has two ranks. Rank 0 makes the calls; in sections titled "by every
rank" both ranks do. ` + "`go test ./docs -rewrite`" + ` rewrites this file.
`

// A section is wrong calls that are made in one state.
type section struct {
	title string
	calls []call
}

// A call is one as a program writes it, and what it returns.
type call struct {
	text string
	err  error
}

// job has body run on two ranks.
func job(body func(ctx context.Context, w *world.World) error, options ...world.Option) error {
	return world.Run(context.Background(), 2, body, options...)
}

// atRank0 has rank 0 make wrong calls of a window in a state that open brings about and shut ends.
func atRank0(t *testing.T, open, shut func(ctx context.Context, win *window.Window[float64]) error, made func(ctx context.Context, win *window.Window[float64]) []call) (calls []call) {
	t.Helper()
	require.NoError(t, job(func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[float64](ctx, w, 20)
		if err != nil {
			return err
		}
		if err := open(ctx, win); err != nil {
			return err
		}
		if w.Rank() == 0 {
			calls = made(ctx, win)
		}
		return errors.Join(w.Barrier(ctx), shut(ctx, win), win.Close())
	}))
	return calls
}

func nothing(context.Context, *window.Window[float64]) error { return nil }

// onEvery is what rank 0 gets of a collective call that all ranks make.
func onEvery(make func(ctx context.Context, w *world.World) error, options ...world.Option) (err error) {
	_ = job(func(ctx context.Context, w *world.World) error {
		e := make(ctx, w)
		if w.Rank() == 0 {
			err = e
		}
		return nil
	}, options...)
	return err
}

// onFailing is what rank 0 gets of a call when rank 1 fails.
func onFailing(body func(ctx context.Context, w *world.World) error) (err error) {
	_ = job(func(ctx context.Context, w *world.World) error {
		e := body(ctx, w)
		if w.Rank() == 0 {
			err = e
		}
		return e
	})
	return err
}

// fenceWhere is what rank 0 gets of a Fence where rank 1, once both have the window, does something else.
func fenceWhere(other func(ctx context.Context, win *window.Window[int64]) error) error {
	made := make(chan struct{})
	return onFailing(func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 1)
		switch {
		case err != nil:
			return err
		case w.Rank() == 1:
			<-made
			return other(ctx, win)
		}
		close(made)
		return win.Fence(ctx)
	})
}

// second is the error of a call that also returns something else.
func second[T any](_ T, err error) error { return err }

// first is what a call returns beside its error.
func first[T any](got T, _ error) T { return got }

// mainVariable has TestMainOfMisuse be a program of world.Main.
const mainVariable = "DOCS_TEST_MAIN"

// TestMainOfMisuse is the program of ofMain.
func TestMainOfMisuse(t *testing.T) {
	if os.Getenv(mainVariable) == "" {
		t.Skip("skipped: another test starts it as its program")
	}
	world.Main(runs)
}

// ofMain is what a program of world.Main prints as its error.
func ofMain(t *testing.T, environment ...string) error {
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestMainOfMisuse$")
	program.Env = append(append(os.Environ(), mainVariable+"=1"), environment...)
	var stderr bytes.Buffer
	program.Stderr = &stderr
	require.Error(t, program.Run())
	_, text, _ := strings.Cut(strings.TrimSpace(stderr.String()), ": ")
	return errors.New(text)
}

// none is no context, over one that has ended.
var (
	none context.Context
	over = func() context.Context {
		ctx, end := context.WithCancel(context.Background())
		end()
		return ctx
	}()
)

func runs(context.Context, *world.World) error { return nil }

func sections(t *testing.T) []section {
	return []section{
		{"Making a job", makingAJob(t)},
		{"A closed World", closedWorld(t)},
		{"A World that no call has made", zeroWorld(t)},
		{"Collectives", collectives(t)},
		{"Collectives on which the ranks disagree, by every rank", disagreements()},
		{"Making a window", makingAWindow(t)},
		{"Making a window, by every rank", makingTogether()},
		{"A window without an open epoch", atRank0(t, nothing, nothing, withoutEpoch)},
		{
			"Within LockAll",
			atRank0(t,
				func(ctx context.Context, win *window.Window[float64]) error { return win.LockAll(ctx) },
				func(ctx context.Context, win *window.Window[float64]) error { return win.UnlockAll(ctx) }, withinLockAll),
		},
		{
			"Within Lock of rank 1",
			atRank0(t, nothing, nothing, func(ctx context.Context, win *window.Window[float64]) []call {
				require.NoError(t, win.Lock(ctx, window.Shared, 1))
				defer func() { require.NoError(t, win.Unlock(ctx, 1)) }()
				return []call{
					{"win.Put(one, 0, 0)", win.Put(make([]float64, 1), 0, 0)},
					{"win.Lock(ctx, window.Shared, 1)", win.Lock(ctx, window.Shared, 1)},
					{"win.Unlock(ctx, 0)", win.Unlock(ctx, 0)},
					{"win.UnlockAll(ctx)", win.UnlockAll(ctx)},
					{"win.Flush(ctx, 0)", win.Flush(ctx, 0)},
					{"win.LockAll(ctx)", win.LockAll(ctx)},
					{"win.Fence(ctx)", win.Fence(ctx)},
					{"win.Close()", win.Close()},
				}
			}),
		},
		{
			"Within a fence epoch",
			atRank0(t,
				func(ctx context.Context, win *window.Window[float64]) error { return win.Fence(ctx) },
				func(ctx context.Context, win *window.Window[float64]) error { return win.Fence(ctx, window.NoSucceed) },
				func(ctx context.Context, win *window.Window[float64]) []call {
					return []call{
						{"win.Lock(ctx, window.Shared, 1)", win.Lock(ctx, window.Shared, 1)},
						{"win.LockAll(ctx)", win.LockAll(ctx)},
						{"win.Start(ctx, group)", win.Start(ctx, first(win.Group(1)))},
						{"win.Post(ctx, group)", win.Post(ctx, first(win.Group(1)))},
						{"win.Flush(ctx, 1)", win.Flush(ctx, 1)},
						{"win.FlushAll(ctx)", win.FlushAll(ctx)},
						{"win.Complete(ctx)", win.Complete(ctx)},
						{"win.Close()", win.Close()},
					}
				}),
		},
		{
			"Within Start and Post of rank 0",
			atRank0(t, nothing, nothing, func(ctx context.Context, win *window.Window[float64]) []call {
				own := first(win.Group(0))
				require.NoError(t, errors.Join(win.Post(ctx, own), win.Start(ctx, own)))
				defer func() { require.NoError(t, errors.Join(win.Complete(ctx), win.Wait(ctx))) }()
				return []call{
					{"win.Put(one, 1, 0)", win.Put(make([]float64, 1), 1, 0)},
					{"win.Start(ctx, group)", win.Start(ctx, own)},
					{"win.Post(ctx, group)", win.Post(ctx, own)},
					{"win.Fence(ctx)", win.Fence(ctx)},
					{"win.Close()", win.Close()},
				}
			}),
		},
		{"After calls whose contexts have ended, to a rank of another machine", afterEnds(t)},
		{"Promises that were given at creation, within LockAll", promises(t)},
		{"A closed window", closedWindow(t)},
		{"A window that no call has made", zeroWindow(t)},
		{"Clients", clients(t)},
		{"Failures", failures()},
		{"Packages below", below()},
		{"Tables, arrays and grids of the examples", examples(t)},
		{"Making tables and arrays of the examples, by every rank", makingExamples()},
	}
}

// afterEnds are the wrong calls after an Unlock, an UnlockAll and a Post that find no room on the way to rank 1.
func afterEnds(t *testing.T) (calls []call) {
	t.Helper()
	released := make(chan struct{})
	require.NoError(t, job(func(ctx context.Context, w *world.World) error {
		busy, stop := jobtest.ServeBusy(internal.Of(w))
		defer stop()
		var wins [2]*window.Window[float64]
		for i := range wins {
			win, err := window.Allocate[float64](ctx, w, 20)
			if err != nil {
				return err
			}
			wins[i] = win
		}
		one, all, err := wins[0], wins[1], error(nil)
		other := first(one.Group(1 - w.Rank()))
		if w.Rank() == 1 {
			go func() {
				<-released
				busy.Store(true)
			}()
			err = errors.Join(one.Start(ctx, other), one.Complete(ctx))
			return errors.Join(err, w.Barrier(ctx), one.Close(), all.Close())
		}
		err = errors.Join(all.LockAll(ctx), one.LockNow(ctx, window.Shared, 1), one.Put(make([]float64, 1), 1, 0))
		// Rank 1 ends also after an error of this rank.
		release := sync.OnceFunc(func() { close(released) })
		defer release()
		if err = errors.Join(err, jobtest.Crowd(ctx, internal.Of(w), 1)); err != nil {
			return err
		}
		for _, cut := range []error{one.Unlock(over, 1), all.UnlockAll(over), one.Post(over, other)} {
			if !errors.Is(cut, context.Canceled) {
				return fmt.Errorf("with a context that has ended: %w", cut)
			}
		}
		values := make([]float64, 1)
		calls = []call{
			{"win.Put(one, 1, 0), after Unlock", one.Put(values, 1, 0)},
			{"win.Flush(ctx, 1), after Unlock", one.Flush(ctx, 1)},
			{"win.Lock(ctx, window.Shared, 1), after Unlock", one.Lock(ctx, window.Shared, 1)},
			{"win.Put(one, 1, 0), after UnlockAll", all.Put(values, 1, 0)},
			{"win.FlushAll(ctx), after UnlockAll", all.FlushAll(ctx)},
			{"win.LockAll(ctx), after UnlockAll", all.LockAll(ctx)},
			{"win.Close(), after UnlockAll", all.Close()},
			{"win.Post(ctx, another group), after Post", one.Post(ctx, first(one.Group(0)))},
			{"win.Wait(ctx), after Post", one.Wait(ctx)},
			{"win.Test(), after Post", second(one.Test())},
		}
		release()
		err = errors.Join(one.Unlock(ctx, 1), all.UnlockAll(ctx), one.Post(ctx, other), one.Wait(ctx))
		return errors.Join(err, w.Barrier(ctx), one.Close(), all.Close())
	}, world.WithDevice("tcp"), world.WithAddress("127.0.0.1")))
	return calls
}

func makingAJob(t *testing.T) []call {
	ctx := t.Context()
	exchange := func(_ context.Context, mine string) ([]string, error) { return []string{mine}, nil }
	var simulator *sim.Simulator
	set := func(name, value string) func() error {
		return func() error {
			t.Setenv(name, value)
			defer os.Unsetenv(name)
			_, err := world.Init(ctx)
			return err
		}
	}
	initialize := func(option world.Option) error { return second(world.Init(ctx, option)) }
	return []call{
		{"world.Run(nil, 2, body)", world.Run(none, 2, runs)},
		{"world.Run(ctx, 2, nil)", world.Run(ctx, 2, nil)},
		{"world.Run(ctx, 0, body)", world.Run(ctx, 0, runs)},
		{"world.Run(ctx, 2, body, world.WithStartTimeout(0))", world.Run(ctx, 2, runs, world.WithStartTimeout(0))},
		{"world.Run(ctx, 2, body, world.WithPeerTimeout(-1))", world.Run(ctx, 2, runs, world.WithPeerTimeout(-1))},
		{`world.Run(ctx, 2, body, world.WithDevice("ethernet"))`, world.Run(ctx, 2, runs, world.WithDevice("ethernet"))},
		{`world.Run(ctx, 2, body, world.WithAddress("10.0.0.0/99"))`, world.Run(ctx, 2, runs, world.WithAddress("10.0.0.0/99"))},
		{`world.Run(ctx, 2, body, world.WithKey([]byte("short")), world.WithDevice("tcp"))`, world.Run(ctx, 2, runs, world.WithKey([]byte("short")), world.WithDevice("tcp"))},
		{"world.Simulate(ctx, nil, 2, body)", world.Simulate(ctx, simulator, 2, runs)},
		{"world.Init(nil)", second(world.Init(none))},
		{"world.Init(ctx, world.WithStartTimeout(0))", initialize(world.WithStartTimeout(0))},
		{"world.Init(ctx) with RMA_DEVICE=ethernet", set("RMA_DEVICE", "ethernet")()},
		{"world.Init(ctx) with RMA_DEVISE=tcp", set("RMA_DEVISE", "tcp")()},
		{"world.Init(ctx) with PMI_RANK=1", set("PMI_RANK", "1")()},
		{"world.Init(ctx) with RMA_ROOT=nowhere", set("RMA_ROOT", "nowhere")()},
		{"world.Init(ctx) with RMA_KEY_FILE=/nowhere", set("RMA_KEY_FILE", "/nowhere")()},
		{"world.Init(ctx) with RMA_RANKS=4", set("RMA_RANKS", "4")()},
		{"world.Init(ctx) where ctx has ended", second(world.Init(over))},
		{"world.Init(ctx) in the body of world.Run", onEvery(func(ctx context.Context, _ *world.World) error { return second(world.Init(ctx)) })},
		{"world.Main(body) with RMA_RANKS=4, started by rmarun", ofMain(t, "PMI_FD=3", "PMI_RANK=0", "PMI_SIZE=2", "RMA_RANKS=4")},
		{"world.New(nil, 0, 1, exchange)", second(world.New(none, 0, 1, exchange))},
		{"world.New(ctx, 0, 1, nil)", second(world.New(ctx, 0, 1, nil))},
		{"world.New(ctx, 1, 1, exchange)", second(world.New(ctx, 1, 1, exchange))},
		{"world.New(ctx, 0, 0, exchange)", second(world.New(ctx, 0, 0, exchange))},
		{"world.Listen(nil, address)", second(world.Listen(none, "127.0.0.1:0"))},
		{`world.Listen(ctx, "nowhere")`, second(world.Listen(ctx, "nowhere"))},
		{`world.Listen(ctx, "0.0.0.0:0") without a key`, second(world.Listen(ctx, "0.0.0.0:0"))},
		{"world.Dial(nil, address)", second(world.Dial(none, "127.0.0.1:1"))},
		{`world.Dial(ctx, "nowhere")`, second(world.Dial(ctx, "nowhere"))},
	}
}

func closedWorld(t *testing.T) (calls []call) {
	ctx := t.Context()
	var w *world.World
	require.NoError(t, world.Run(ctx, 1, func(_ context.Context, one *world.World) error { w = one; return nil }))
	return []call{
		{"w.Barrier(ctx)", w.Barrier(ctx)},
		{"w.Split(ctx, 0, 0)", second(w.Split(ctx, 0, 0))},
		{"w.Shrink(ctx)", second(w.Shrink(ctx))},
		{"world.Broadcast(ctx, w, 0, ints)", world.Broadcast(ctx, w, 0, []int{1})},
		{"window.Allocate[int64](ctx, w, 1)", second(window.Allocate[int64](ctx, w, 1))},
		{"window.Create(ctx, w, ints)", second(window.Create(ctx, w, []int64{1}))},
		{"world.Register(w, ints)", second(world.Register(w, []int64{1}))},
	}
}

func zeroWorld(t *testing.T) []call {
	ctx, w, one, add := t.Context(), new(world.World), make([]int, 1), func(a, b int) int { return a + b }
	return []call{
		{"w.Barrier(ctx)", w.Barrier(ctx)},
		{"w.Split(ctx, 0, 0)", second(w.Split(ctx, 0, 0))},
		{"w.Shrink(ctx)", second(w.Shrink(ctx))},
		{"w.Close()", w.Close()},
		{"w.Err(0)", w.Err(0)},
		{"world.Broadcast(ctx, w, 0, one)", world.Broadcast(ctx, w, 0, one)},
		{"world.Gather(ctx, w, 0, one, one)", world.Gather(ctx, w, 0, one, one)},
		{"world.Scatter(ctx, w, 0, one, one)", world.Scatter(ctx, w, 0, one, one)},
		{"world.AllGather(ctx, w, one, one)", world.AllGather(ctx, w, one, one)},
		{"world.AllToAll(ctx, w, one, one)", world.AllToAll(ctx, w, one, one)},
		{"world.Reduce(ctx, w, 0, one, one, add)", world.Reduce(ctx, w, 0, one, one, add)},
		{"world.AllReduce(ctx, w, one, one, add)", world.AllReduce(ctx, w, one, one, add)},
		{"world.ReduceOp(ctx, w, 0, one, one, world.Sum)", world.ReduceOp(ctx, w, 0, one, one, world.Sum)},
		{"world.AllReduceOp(ctx, w, one, one, world.Sum)", world.AllReduceOp(ctx, w, one, one, world.Sum)},
		{"window.Allocate[int64](ctx, w, 1)", second(window.Allocate[int64](ctx, w, 1))},
		{"window.Create(ctx, w, ints)", second(window.Create(ctx, w, []int64{1}))},
		{`window.Attach[int64](ctx, w, "words")`, second(window.Attach[int64](ctx, w, "words"))},
		{"world.Register(w, ints)", second(world.Register(w, []int64{1}))},
		{"world.Register(nil, ints)", second(world.Register(nil, []int64{1}))},
	}
}

func collectives(t *testing.T) (calls []call) {
	one, two, numbers := make([]int, 1), make([]int, 2), make([]float64, 2)
	add := func(a, b int) int { return a + b }
	require.NoError(t, job(func(ctx context.Context, w *world.World) error {
		if w.Rank() != 0 {
			return nil
		}
		calls = []call{
			{"w.Barrier(nil)", w.Barrier(none)},
			{"w.CloseContext(nil)", w.CloseContext(none)},
			{"w.Split(nil, 0, 0)", second(w.Split(none, 0, 0))},
			{"w.Shrink(nil)", second(w.Shrink(none))},
			{"world.Broadcast(ctx, nil, 0, ints)", world.Broadcast(ctx, nil, 0, one)},
			{"world.Broadcast(nil, w, 0, ints)", world.Broadcast(none, w, 0, one)},
			{"world.Broadcast(ctx, w, 2, ints)", world.Broadcast(ctx, w, 2, one)},
			{"world.Broadcast(ctx, w, 0, strings)", world.Broadcast(ctx, w, 0, []string{"a"})},
			{"world.Broadcast(ctx, w, 0, structs)", world.Broadcast(ctx, w, 0, []struct{ A []int }{{}})},
			{"world.Gather(ctx, w, 0, one, one)", world.Gather(ctx, w, 0, one, one)},
			{"world.Scatter(ctx, w, 0, one, one)", world.Scatter(ctx, w, 0, one, one)},
			{"world.AllGather(ctx, w, one, one)", world.AllGather(ctx, w, one, one)},
			{"world.AllToAll(ctx, w, one, one)", world.AllToAll(ctx, w, one, one)},
			{"world.AllToAll(ctx, w, two, one)", world.AllToAll(ctx, w, two, one)},
			{"world.Reduce(ctx, w, 0, one, two, add)", world.Reduce(ctx, w, 0, one, two, add)},
			{"world.Reduce(ctx, w, 0, two, one, add)", world.Reduce(ctx, w, 0, two, one, add)},
			{"world.AllReduce(ctx, w, one, one, nil)", world.AllReduce(ctx, w, one, one, nil)},
			{"world.AllReduceOp(ctx, w, floats, floats, world.Xor)", world.AllReduceOp(ctx, w, numbers, numbers, world.Xor)},
			{"world.AllReduceOp(ctx, w, floats, floats, window.Replace)", world.AllReduceOp(ctx, w, numbers, numbers, window.Replace)},
			{"world.ReduceOp(ctx, w, 0, floats, nil, world.Sum)", world.ReduceOp(ctx, w, 0, numbers, nil, world.Sum)},
		}
		return nil
	}))
	alone := func(text string, body func(ctx context.Context, w *world.World) error) {
		var err error
		require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error { err = body(ctx, w); return nil }))
		calls = append(calls, call{text + ", in a job of one rank", err})
	}
	alone("world.AllGather(ctx, w, one, two)", func(ctx context.Context, w *world.World) error { return world.AllGather(ctx, w, one, two) })
	alone("world.AllGather(ctx, w, two, one)", func(ctx context.Context, w *world.World) error { return world.AllGather(ctx, w, two, one) })
	alone("world.AllToAll(ctx, w, one, two)", func(ctx context.Context, w *world.World) error { return world.AllToAll(ctx, w, one, two) })
	alone("world.Broadcast(ctx, w, 1, one)", func(ctx context.Context, w *world.World) error { return world.Broadcast(ctx, w, 1, one) })
	return calls
}

func disagreements() []call {
	return []call{
		{"world.Broadcast(ctx, w, 0, ints) of one element and of two, then w.Barrier(ctx)", onEvery(func(ctx context.Context, w *world.World) error {
			return errors.Join(world.Broadcast(ctx, w, 0, make([]int, 1+w.Rank())), w.Barrier(ctx))
		})},
		{"w.Barrier(ctx), and the other rank world.Broadcast", onEvery(func(ctx context.Context, w *world.World) error {
			if w.Rank() == 0 {
				return w.Barrier(ctx)
			}
			return world.Broadcast(ctx, w, 0, make([]int, 1))
		})},
	}
}

func makingAWindow(t *testing.T) (calls []call) {
	ctx := t.Context()
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int32](ctx, w, 3)
		if err != nil {
			return err
		}
		calls = []call{
			{"window.Allocate[int64](nil, w, 1)", second(window.Allocate[int64](none, w, 1))},
			{"window.Allocate[int64](ctx, nil, 1)", second(window.Allocate[int64](ctx, nil, 1))},
			{"window.View[int64](nil)", second(window.View[int64]((*window.Window[int32])(nil)))},
			{"window.Allocate[int64](ctx, w, -1)", second(window.Allocate[int64](ctx, w, -1))},
			{"window.Allocate[int64](ctx, w, math.MaxInt)", second(window.Allocate[int64](ctx, w, math.MaxInt))},
			{"window.Allocate[int64](ctx, w, 1, window.Notifications(-1))", second(window.Allocate[int64](ctx, w, 1, window.Notifications(-1)))},
			{"window.Allocate[int64](ctx, w, 1, window.Seats(1<<20))", second(window.Allocate[int64](ctx, w, 1, window.Seats(1<<20)))},
			{"window.Create(nil, w, ints)", second(window.Create(none, w, []int64{1}))},
			{"window.Create[int64](ctx, nil, ints)", second(window.Create(ctx, nil, []int64{1}))},
			{"window.View[int64](window of three int32)", second(window.View[int64](win))},
			{"window.View[complex128](window of three int32)", second(window.View[complex128](win))},
			{"window.Attach[int64](ctx, w, name), where w is of no world.Dial", second(window.Attach[int64](ctx, w, "a"))},
			{"window.Attach[int64](ctx, nil, name)", second(window.Attach[int64](ctx, nil, "a"))},
			{"window.Attach[int64](nil, w, name)", second(window.Attach[int64](none, w, "a"))},
		}
		return win.Close()
	}))
	return calls
}

func makingTogether() []call {
	allocate := func(count func(rank int) int, options func(rank int) []window.Option) error {
		return onEvery(func(ctx context.Context, w *world.World) error {
			return second(window.Allocate[int64](ctx, w, count(w.Rank()), options(w.Rank())...))
		})
	}
	one := func(int) int { return 1 }
	no := func(int) []window.Option { return nil }
	return []call{
		{"window.Allocate[int64](ctx, w, -1), rank 1", allocate(func(rank int) int { return -rank }, no)},
		{"window.Allocate[int64](ctx, w, -1), rank 0", allocate(func(rank int) int { return rank - 1 }, no)},
		{"window.Allocate[int64](ctx, w, 1, window.Notifications(rank))", allocate(one, func(rank int) []window.Option { return []window.Option{window.Notifications(rank)} })},
		{"window.Allocate[int64](ctx, w, 1, window.Notifications(-1)), rank 1", allocate(one, func(rank int) []window.Option { return []window.Option{window.Notifications(-rank)} })},
		{"window.Allocate[int64](ctx, w, 1, window.Seats(rank))", allocate(one, func(rank int) []window.Option { return []window.Option{window.Seats(rank)} })},
		{"window.Allocate[int64](ctx, w, 1, window.SameOp()), rank 1", allocate(one, func(rank int) []window.Option { return []window.Option{window.SameOp()}[:rank] })},
		{"window.Allocate[int64](ctx, w, 1, window.Sparse()), rank 1", allocate(one, func(rank int) []window.Option { return []window.Option{window.Sparse()}[:rank] })},
		{"window.Allocate[int64] and, on rank 1, of float64", onEvery(func(ctx context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return second(window.Allocate[float64](ctx, w, 1))
			}
			return second(window.Allocate[int64](ctx, w, 1))
		})},
		{"window.Allocate[int64] and, on rank 1, window.Create", onEvery(func(ctx context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return second(window.Create(ctx, w, []int64{1}))
			}
			return second(window.Allocate[int64](ctx, w, 1))
		})},
		{"window.Allocate[int64] and, on rank 1, w.Barrier", onEvery(func(ctx context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return w.Barrier(ctx)
			}
			return second(window.Allocate[int64](ctx, w, 1))
		})},
	}
}

func withoutEpoch(ctx context.Context, win *window.Window[float64]) []call {
	three, old := make([]float64, 3), 0.0
	group := first(win.Group(1))
	return []call{
		{"win.CloseContext(nil)", win.CloseContext(none)},
		{"win.Fence(nil)", win.Fence(none)},
		{"win.Fence(ctx, window.NoCheck)", win.Fence(ctx, window.NoCheck)},
		{"win.Fence(ctx, 128)", win.Fence(ctx, 128)},
		{"win.Start(nil, group)", win.Start(none, group)},
		{"win.Complete(nil)", win.Complete(none)},
		{"win.Complete(ctx)", win.Complete(ctx)},
		{"win.Post(nil, group)", win.Post(none, group)},
		{"win.Wait(nil)", win.Wait(none)},
		{"win.Wait(ctx)", win.Wait(ctx)},
		{"win.Test()", second(win.Test())},
		{"win.Group(2)", second(win.Group(2))},
		{"win.Group(1, 1)", second(win.Group(1, 1))},
		{"win.Start(ctx, group of a larger job)", win.Start(ctx, first(epoch.NewGroup(9, 8)))},
		{"win.Post(ctx, group of a larger job)", win.Post(ctx, first(epoch.NewGroup(9, 8)))},
		{"win.Lock(nil, window.Shared, 1)", win.Lock(none, window.Shared, 1)},
		{"win.Lock(ctx, window.Shared, 2)", win.Lock(ctx, window.Shared, 2)},
		{"win.Lock(ctx, 7, 1)", win.Lock(ctx, 7, 1)},
		{"win.LockNow(nil, window.Shared, 1)", win.LockNow(none, window.Shared, 1)},
		{"win.LockNow(ctx, window.Shared, 2)", win.LockNow(ctx, window.Shared, 2)},
		{"win.LockNow(ctx, 7, 1)", win.LockNow(ctx, 7, 1)},
		{"win.Unlock(nil, 1)", win.Unlock(none, 1)},
		{"win.Unlock(ctx, 1)", win.Unlock(ctx, 1)},
		{"win.Unlock(ctx, -1)", win.Unlock(ctx, -1)},
		{"win.LockAll(nil)", win.LockAll(none)},
		{"win.LockAll(ctx, window.NoPut)", win.LockAll(ctx, window.NoPut)},
		{"win.UnlockAll(nil)", win.UnlockAll(none)},
		{"win.UnlockAll(ctx)", win.UnlockAll(ctx)},
		{"win.Flush(nil, 1)", win.Flush(none, 1)},
		{"win.Flush(ctx, 1)", win.Flush(ctx, 1)},
		{"win.Flush(ctx, 2)", win.Flush(ctx, 2)},
		{"win.FlushAll(nil)", win.FlushAll(none)},
		{"win.FlushAll(ctx)", win.FlushAll(ctx)},
		{"win.FlushLocal(nil, 1)", win.FlushLocal(none, 1)},
		{"win.FlushLocal(ctx, 1)", win.FlushLocal(ctx, 1)},
		{"win.FlushLocalAll(nil)", win.FlushLocalAll(none)},
		{"win.FlushLocalAll(ctx)", win.FlushLocalAll(ctx)},
		{"win.RFlush(1)", second(win.RFlush(1))},
		{"win.RFlush(2)", second(win.RFlush(2))},
		{"window.Request{}.Wait(nil)", window.Request{}.Wait(none)},
		{"window.WaitAll(nil)", window.WaitAll(none)},
		{"window.WaitAny(nil, request)", second(window.WaitAny(none, window.Request{}))},
		{"window.WaitAny(ctx)", second(window.WaitAny(ctx))},
		{"win.WaitNotify(nil, 0, 1)", win.WaitNotify(none, 0, 1)},
		{"win.WaitNotify(ctx, 16, 1)", win.WaitNotify(ctx, 16, 1)},
		{"win.TestNotify(-1, 1)", second(win.TestNotify(-1, 1))},
		{"win.Put(three, 1, 0)", win.Put(three, 1, 0)},
		{"win.Get(three, 1, 0)", win.Get(three, 1, 0)},
		{"win.Accumulate(window.Sum, three, 1, 0)", win.Accumulate(window.Sum, three, 1, 0)},
		{"win.CompareAndSwap(1, 2, &old, 1, 0)", win.CompareAndSwap(1, 2, &old, 1, 0)},
		{"win.PutNotify(three, 1, 0, 0)", win.PutNotify(three, 1, 0, 0)},
	}
}

func withinLockAll(ctx context.Context, win *window.Window[float64]) []call {
	one, two, three, old := make([]float64, 1), make([]float64, 2), make([]float64, 3), 0.0
	put := func(from, to window.Layout) error { return win.PutLayout(three, from, 1, 0, to) }
	return []call{
		{"win.Put(three, 2, 0)", win.Put(three, 2, 0)},
		{"win.Put(one, -1, 0)", win.Put(one, -1, 0)},
		{"win.Put(three, 1, -1)", win.Put(three, 1, -1)},
		{"win.Put(twenty-one, 1, -1)", win.Put(make([]float64, 21), 1, -1)},
		{"win.Put(twenty-one, 1, 0)", win.Put(make([]float64, 21), 1, 0)},
		{"win.Put(one, 1, 20)", win.Put(one, 1, 20)},
		{"win.Get(three, 1, 18)", win.Get(three, 1, 18)},
		{"win.RPut(three, 1, 18)", second(win.RPut(three, 1, 18))},
		{"win.RGet(three, 1, 18)", second(win.RGet(three, 1, 18))},
		{"win.Accumulate(window.And, three, 1, 0)", win.Accumulate(window.And, three, 1, 0)},
		{"win.Accumulate(window.Op(77), one, 1, 0)", win.Accumulate(window.Op(77), one, 1, 0)},
		{"win.RAccumulate(window.And, three, 1, 0)", second(win.RAccumulate(window.And, three, 1, 0))},
		{"win.AccumulateEach(window.Sum, three, 1, []int{0, 1})", win.AccumulateEach(window.Sum, three, 1, []int{0, 1})},
		{"win.AccumulateEach(window.Sum, one, 1, []int{0, 1})", win.AccumulateEach(window.Sum, one, 1, []int{0, 1})},
		{"win.AccumulateEach(window.Sum, one, 1, []int{20})", win.AccumulateEach(window.Sum, one, 1, []int{20})},
		{"win.GetAccumulate(window.Sum, one, two, 1, 0)", win.GetAccumulate(window.Sum, one, two, 1, 0)},
		{"win.RGetAccumulate(window.Sum, two, one, 1, 0)", second(win.RGetAccumulate(window.Sum, two, one, 1, 0))},
		{"win.FetchAndOp(window.Sum, 1, nil, 1, 0)", win.FetchAndOp(window.Sum, 1, nil, 1, 0)},
		{"win.CompareAndSwap(1, 2, nil, 1, 0)", win.CompareAndSwap(1, 2, nil, 1, 0)},
		{"win.CompareAndSwap(1, 2, &old, 1, 20)", win.CompareAndSwap(1, 2, &old, 1, 20)},
		{"win.PutNotify(one, 1, 0, 16)", win.PutNotify(one, 1, 0, 16)},
		{"win.PutLayout(three, window.Strided(3, 1, -1), 1, 0, window.Contiguous(3))", put(window.Strided(3, 1, -1), window.Contiguous(3))},
		{"win.PutLayout(three, window.Contiguous(-3), 1, 0, window.Contiguous(3))", put(window.Contiguous(-3), window.Contiguous(3))},
		{"win.PutLayout(three, window.Contiguous(3), 1, 0, window.Strided(3, 1, math.MaxInt))", put(window.Contiguous(3), window.Strided(3, 1, math.MaxInt))},
		{"win.PutLayout(three, window.Contiguous(3), 1, 0, window.Indexed(window.Block{Offset: -1, Length: 3}))", put(window.Contiguous(3), window.Indexed(window.Block{Offset: -1, Length: 3}))},
		{"win.PutLayout(three, window.Contiguous(3), 1, 0, window.Indexed(window.Block{Offset: math.MaxInt, Length: 1}))", put(window.Contiguous(3), window.Indexed(window.Block{Offset: math.MaxInt, Length: 1}))},
		{"win.PutLayout(three, window.Contiguous(3), 1, 0, window.Contiguous(1))", put(window.Contiguous(3), window.Contiguous(1))},
		{"win.PutLayout(three, window.Contiguous(4), 1, 0, window.Contiguous(4))", put(window.Contiguous(4), window.Contiguous(4))},
		{"win.PutLayout(three, window.Contiguous(3), 1, 0, window.Strided(3, 1, 0))", put(window.Contiguous(3), window.Strided(3, 1, 0))},
		{"win.GetLayout(one, window.Contiguous(1), 1, 0, window.Strided(1, -1, 1))", win.GetLayout(one, window.Contiguous(1), 1, 0, window.Strided(1, -1, 1))},
		{"win.AccumulateLayout(window.And, three, window.Contiguous(3), 1, 0, window.Contiguous(3))", win.AccumulateLayout(window.And, three, window.Contiguous(3), 1, 0, window.Contiguous(3))},
		{"win.Lock(ctx, window.Shared, 1)", win.Lock(ctx, window.Shared, 1)},
		{"win.LockAll(ctx)", win.LockAll(ctx)},
		{"win.Fence(ctx)", win.Fence(ctx)},
		{"win.Start(ctx, group)", win.Start(ctx, first(win.Group(1)))},
		{"win.Unlock(ctx, 1)", win.Unlock(ctx, 1)},
		{"win.Close()", win.Close()},
	}
}

func promises(t *testing.T) (calls []call) {
	require.NoError(t, job(func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 4, window.SingleElement(), window.SameOp(), window.Notifications(1))
		if err != nil {
			return err
		}
		if err := win.LockAll(ctx); err != nil {
			return err
		}
		if w.Rank() == 0 {
			calls = []call{
				{"win.Accumulate(window.Sum, three, 1, 0) after window.SingleElement", win.Accumulate(window.Sum, make([]int64, 3), 1, 0)},
				{"win.Accumulate(window.Max, one, 1, 0) after a Sum and window.SameOp", errors.Join(win.Accumulate(window.Sum, make([]int64, 1), 1, 0), win.Accumulate(window.Max, make([]int64, 1), 1, 0))},
				{"win.PutNotify(one, 1, 0, 1) after window.Notifications(1)", win.PutNotify(make([]int64, 1), 1, 0, 1)},
			}
		}
		return errors.Join(win.UnlockAll(ctx), win.Close())
	}))
	return calls
}

func closedWindow(t *testing.T) (calls []call) {
	require.NoError(t, job(func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[float64](ctx, w, 20)
		if err != nil {
			return err
		}
		if err := win.Close(); err != nil || w.Rank() != 0 {
			return err
		}
		calls = []call{
			{"win.Put(one, 1, 0)", win.Put(make([]float64, 1), 1, 0)},
			{"win.Fence(ctx)", win.Fence(ctx)},
			{"win.Start(ctx, window.Group{})", win.Start(ctx, window.Group{})},
			{"win.Post(ctx, window.Group{})", win.Post(ctx, window.Group{})},
			{"win.Lock(ctx, window.Shared, 1)", win.Lock(ctx, window.Shared, 1)},
			{"win.LockAll(ctx)", win.LockAll(ctx)},
			{"win.UnlockAll(ctx)", win.UnlockAll(ctx)},
			{"win.Flush(ctx, 1)", win.Flush(ctx, 1)},
			{"win.Sync()", win.Sync()},
			{"win.WaitNotify(ctx, 0, 1)", win.WaitNotify(ctx, 0, 1)},
			{"win.TestNotify(0, 1)", second(win.TestNotify(0, 1))},
			{"window.View[int64](win)", second(window.View[int64](win))},
			{"win.Close()", win.Close()},
		}
		return nil
	}))
	return calls
}

func zeroWindow(t *testing.T) []call {
	ctx, win, one := t.Context(), new(window.Window[int64]), make([]int64, 1)
	old, single := int64(0), window.Contiguous(1)
	return []call{
		{"win.Fence(ctx)", win.Fence(ctx)},
		{"win.Start(ctx, window.Group{})", win.Start(ctx, window.Group{})},
		{"win.Complete(ctx)", win.Complete(ctx)},
		{"win.Post(ctx, window.Group{})", win.Post(ctx, window.Group{})},
		{"win.Wait(ctx)", win.Wait(ctx)},
		{"win.Test()", second(win.Test())},
		{"win.Group(0)", second(win.Group(0))},
		{"win.Lock(ctx, window.Shared, 0)", win.Lock(ctx, window.Shared, 0)},
		{"win.LockNow(ctx, window.Shared, 0)", win.LockNow(ctx, window.Shared, 0)},
		{"win.Unlock(ctx, 0)", win.Unlock(ctx, 0)},
		{"win.LockAll(ctx)", win.LockAll(ctx)},
		{"win.UnlockAll(ctx)", win.UnlockAll(ctx)},
		{"win.Flush(ctx, 0)", win.Flush(ctx, 0)},
		{"win.FlushLocal(ctx, 0)", win.FlushLocal(ctx, 0)},
		{"win.FlushAll(ctx)", win.FlushAll(ctx)},
		{"win.FlushLocalAll(ctx)", win.FlushLocalAll(ctx)},
		{"win.RFlush(0)", second(win.RFlush(0))},
		{"win.Sync()", win.Sync()},
		{"win.WaitNotify(ctx, 0, 1)", win.WaitNotify(ctx, 0, 1)},
		{"win.TestNotify(0, 1)", second(win.TestNotify(0, 1))},
		{"win.Put(one, 0, 0)", win.Put(one, 0, 0)},
		{"win.Get(one, 0, 0)", win.Get(one, 0, 0)},
		{"win.PutNotify(one, 0, 0, 0)", win.PutNotify(one, 0, 0, 0)},
		{"win.Accumulate(window.Sum, one, 0, 0)", win.Accumulate(window.Sum, one, 0, 0)},
		{"win.GetAccumulate(window.Sum, one, one, 0, 0)", win.GetAccumulate(window.Sum, one, one, 0, 0)},
		{"win.FetchAndOp(window.Sum, 1, &old, 0, 0)", win.FetchAndOp(window.Sum, 1, &old, 0, 0)},
		{"win.CompareAndSwap(1, 2, &old, 0, 0)", win.CompareAndSwap(1, 2, &old, 0, 0)},
		{"win.AccumulateEach(window.Sum, one, 0, []int{0})", win.AccumulateEach(window.Sum, one, 0, []int{0})},
		{"win.PutLayout(one, window.Contiguous(1), 0, 0, window.Contiguous(1))", win.PutLayout(one, single, 0, 0, single)},
		{"win.RPut(one, 0, 0)", second(win.RPut(one, 0, 0))},
		{"win.RGet(one, 0, 0)", second(win.RGet(one, 0, 0))},
		{"win.RAccumulate(window.Sum, one, 0, 0)", second(win.RAccumulate(window.Sum, one, 0, 0))},
		{"win.RGetAccumulate(window.Sum, one, one, 0, 0)", second(win.RGetAccumulate(window.Sum, one, one, 0, 0))},
		{"window.View[int32](win)", second(window.View[int32](win))},
		{"win.Close()", win.Close()},
	}
}

func clients(t *testing.T) (calls []call) {
	ctx := t.Context()
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		plain, err := window.Allocate[int64](ctx, w, 1)
		if err != nil {
			return err
		}
		win, err := window.Allocate[int64](ctx, w, 1, window.Seats(1))
		if err != nil {
			return err
		}
		read, err := window.Allocate[int64](ctx, w, 1, window.Seats(1))
		if err != nil {
			return err
		}
		listener, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
		if err != nil {
			return err
		}
		within := func(limits window.Limits) error {
			return (&window.Server{Limits: limits}).Serve(ctx, listener, win.As("words"))
		}
		server, errWhy := &window.Server{Limits: window.Limits{SeatsPerSession: 1}}, errors.New("maintenance")
		var no *window.Server
		calls = append(calls, []call{
			{`window.Serve(nil, listener, win.As("words"))`, window.Serve(none, listener, win.As("words"))},
			{`window.Serve(ctx, nil, win.As("words"))`, window.Serve(ctx, nil, win.As("words"))},
			{`window.Serve(ctx, new(world.Listener), win.As("words"))`, window.Serve(ctx, new(world.Listener), win.As("words"))},
			{"new(world.Listener).Close()", new(world.Listener).Close()},
			{"window.Serve(ctx, listener)", window.Serve(ctx, listener)},
			{"window.Serve(ctx, listener, window.Served{})", window.Serve(ctx, listener, window.Served{})},
			{`window.Serve(ctx, listener, win.As(""))`, window.Serve(ctx, listener, win.As(""))},
			{`window.Serve(ctx, listener, win.As("a"), win.As("a"))`, window.Serve(ctx, listener, win.As("a"), win.As("a"))},
			{`window.Serve(ctx, listener, plain.As("words")), made without Seats`, window.Serve(ctx, listener, plain.As("words"))},
			{`server.Serve(ctx, listener, win.As("words")) with Limits{Sessions: -1}`, within(window.Limits{Sessions: -1})},
			{`server.Serve(ctx, listener, win.As("words")) with Limits{SeatsPerSession: -1}`, within(window.Limits{SeatsPerSession: -1})},
			{`server.Serve(ctx, listener, win.As("words")) with Limits{IdleTime: time.Second}`, within(window.Limits{IdleTime: time.Second})},
			{`(*window.Server)(nil).Serve(ctx, listener, win.As("words"))`, no.Serve(ctx, listener, win.As("words"))},
			{"(*window.Server)(nil).Evict(ctx, id, why)", no.Evict(ctx, 1, errWhy)},
			{"server.Evict(nil, id, why)", server.Evict(none, 1, errWhy)},
			{"server.Evict(ctx, id, nil)", server.Evict(ctx, 1, nil)},
		}...)
		serving, cancel := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() { served <- server.Serve(serving, listener, win.As("words"), read.As("read").ReadOnly()) }()
		session, err := world.Dial(ctx, listener.Addr().String(), world.WithoutKey())
		if err == nil {
			calls = append(calls, attached(ctx, session)...)
			calls = append(calls, call{"win.Close() of a window that is served", win.Close()})
			calls = append(calls, onlyReading(ctx, session)...)
			calls = append(calls, call{`window.Attach[int64](ctx, another session, "read") once more`, attachAnother(ctx, listener.Addr().String())})
			calls = append(calls, evicted(ctx, session, server, errWhy)...)
			err = session.Close()
		}
		cancel()
		err = errors.Join(err, <-served, listener.Close(), win.Close(), read.Close(), plain.Close())
		return err
	}))
	return calls
}

// onlyReading are calls of a client of a window that is served read-only.
func onlyReading(ctx context.Context, session *world.World) []call {
	read, err := window.Attach[int64](ctx, session, "read")
	if err != nil {
		return []call{{`window.Attach[int64](ctx, session, "read")`, err}}
	}
	one, old := make([]int64, 1), int64(0)
	calls := []call{
		{`window.Attach[int64](ctx, session, "read") once more`, second(window.Attach[int64](ctx, session, "read"))},
		{"read.Lock(ctx, window.Exclusive, 0) of a window that is served ReadOnly", read.Lock(ctx, window.Exclusive, 0)},
	}
	if err := read.Lock(ctx, window.Shared, 0); err != nil {
		return append(calls, call{"read.Lock(ctx, window.Shared, 0)", err})
	}
	return append(calls, []call{
		{"read.Put(one, 0, 0), within Lock(ctx, window.Shared, 0)", read.Put(one, 0, 0)},
		{"read.PutNotify(one, 0, 0, 0), likewise", read.PutNotify(one, 0, 0, 0)},
		{"read.Accumulate(window.Sum, one, 0, 0), likewise", read.Accumulate(window.Sum, one, 0, 0)},
		{"read.AccumulateEach(window.Sum, one, 0, []int{0}), likewise", read.AccumulateEach(window.Sum, one, 0, []int{0})},
		{"read.FetchAndOp(window.Sum, 1, &old, 0, 0), likewise", read.FetchAndOp(window.Sum, 1, &old, 0, 0)},
		{"read.CompareAndSwap(1, 2, &old, 0, 0), likewise", read.CompareAndSwap(1, 2, &old, 0, 0)},
	}...)
}

// attachAnother has another client attach to the window that onlyReading has attached to.
func attachAnother(ctx context.Context, address string) error {
	session, err := world.Dial(ctx, address, world.WithoutKey())
	if err != nil {
		return err
	}
	return errors.Join(second(window.Attach[int64](ctx, session, "read")), session.Close())
}

// evicted are calls of a client that its server has evicted.
func evicted(ctx context.Context, session *world.World, server *window.Server, why error) []call {
	win, err := window.Attach[int64](ctx, session, "words")
	if err == nil {
		err = win.Lock(ctx, window.Shared, 0)
	}
	if err == nil {
		err = server.Evict(ctx, server.Sessions()[0].ID, why)
	}
	if err != nil {
		return []call{{"server.Evict(ctx, id, why)", err}}
	}
	return []call{
		{"win.Unlock(ctx, 0) after server.Evict(ctx, id, why)", win.Unlock(ctx, 0)},
		{"server.Evict(ctx, id, why) once more", server.Evict(ctx, 1, why)},
	}
}

// attached are calls of a client.
func attached(ctx context.Context, session *world.World) []call {
	calls := []call{
		{`window.Attach[int64](ctx, session, "")`, second(window.Attach[int64](ctx, session, ""))},
		{`window.Attach[int64](ctx, session, "no such")`, second(window.Attach[int64](ctx, session, "no such"))},
		{`window.Attach[float64](ctx, session, "words")`, second(window.Attach[float64](ctx, session, "words"))},
		{"session.Barrier(ctx)", session.Barrier(ctx)},
		{"session.Split(ctx, 0, 0)", second(session.Split(ctx, 0, 0))},
		{"session.Shrink(ctx)", second(session.Shrink(ctx))},
		{"window.Allocate[int64](ctx, session, 1)", second(window.Allocate[int64](ctx, session, 1))},
	}
	win, err := window.Attach[int64](ctx, session, "words")
	if err != nil {
		return append(calls, call{`window.Attach[int64](ctx, session, "words")`, err})
	}
	return append(calls, []call{
		{`window.Attach[int64](ctx, session, "words") once more`, second(window.Attach[int64](ctx, session, "words"))},
		{"win.Fence(ctx)", win.Fence(ctx)},
		{"win.Start(ctx, window.Group{})", win.Start(ctx, window.Group{})},
		{"win.Post(ctx, window.Group{})", win.Post(ctx, window.Group{})},
		{"win.Complete(ctx)", win.Complete(ctx)},
		{"win.Wait(ctx)", win.Wait(ctx)},
		{"win.Test()", second(win.Test())},
		{"win.Lock(ctx, window.Shared, 1)", win.Lock(ctx, window.Shared, 1)},
		{"win.WaitNotify(ctx, 0, 1)", win.WaitNotify(ctx, 0, 1)},
		{"win.TestNotify(0, 1)", second(win.TestNotify(0, 1))},
		{"win.Close()", cmp.Or(win.Close(), win.Close())},
	}...)
}

func failures() []call {
	// rank0 has rank 0 call something and the other meet it in a Fence.
	rank0 := func(text string, wrong func(ctx context.Context, win *window.Window[int64]) error) call {
		return call{text, job(func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int64](ctx, w, 1)
			switch {
			case err != nil:
				return err
			case w.Rank() == 0:
				return wrong(ctx, win)
			}
			return win.Fence(ctx)
		})}
	}
	errBody := errors.New("body failed")
	return []call{
		rank0("win.Put(one, 1, 0) on rank 0, from Run", func(_ context.Context, win *window.Window[int64]) error { return win.Put([]int64{1}, 1, 0) }),
		rank0("win.Unlock(ctx, 1) on rank 0, from Run", func(ctx context.Context, win *window.Window[int64]) error { return win.Unlock(ctx, 1) }),
		rank0("win.Fence(nil) on rank 0, from Run", func(_ context.Context, win *window.Window[int64]) error { return win.Fence(none) }),
		rank0("w.Barrier(nil) on rank 0, from Run", func(_ context.Context, win *window.Window[int64]) error { return win.World().Barrier(none) }),
		rank0("a return of rank 0 before the Fence of rank 1, from Run", func(context.Context, *window.Window[int64]) error { return nil }),
		rank0("a return of rank 0 with Lock open, from Run", func(ctx context.Context, win *window.Window[int64]) error { return win.Lock(ctx, window.Shared, 0) }),
		{"win.Fence(ctx) after rank 1 has failed", fenceWhere(func(context.Context, *window.Window[int64]) error { return errBody })},
		{"win.Fence(ctx) after rank 1 has made a wrong Unlock", fenceWhere(func(ctx context.Context, win *window.Window[int64]) error { return win.Unlock(ctx, 0) })},
		{"w.Barrier(ctx) after rank 1 has returned", onEvery(func(ctx context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return nil
			}
			return w.Barrier(ctx)
		})},
		{"w.Barrier(ctx) after rank 1 has made a wrong Broadcast", onFailing(func(ctx context.Context, w *world.World) error {
			if w.Rank() == 1 {
				return world.Broadcast(ctx, w, 9, []int{1})
			}
			return w.Barrier(ctx)
		})},
	}
}

func below() []call {
	var packet [16]byte
	s := epoch.New(0, 2)
	return []call{
		{"epoch.NewGroup(1, 1)", second(epoch.NewGroup(1, 1))},
		{"epoch.State.BeginComplete()", second(s.BeginComplete())},
		{"aggregate.Check(packet of zeroes)", second(aggregate.Check(packet[:]))},
		{"reduce.Lookup(reduce.Float64, reduce.And)", second(reduce.Lookup(reduce.Float64, reduce.And))},
		{"reduce.Lookup(reduce.Complex64, reduce.Min)", second(reduce.Lookup(reduce.Complex64, reduce.Min))},
		{"reduce.Use(reduce.Level(9))", second(reduce.Use(9))},
	}
}

func examples(t *testing.T) (calls []call) {
	config := hashtable.Config{Slots: 100, RecordBytes: 1 << 10}
	require.NoError(t, job(func(ctx context.Context, w *world.World) error {
		table, err := hashtable.New(ctx, w, config)
		if err != nil {
			return err
		}
		array, err := globalarray.New[int](ctx, w, 10, globalarray.Blocks())
		if err != nil {
			return err
		}
		field, err := grid.New(ctx, w, 6, 6, 1, grid.Notify)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			one, index := make([]int, 1), []int{9}
			_, failed := table.All(none)
			calls = []call{
				{"hashtable.New(nil, w, config)", second(hashtable.New(none, w, config))},
				{"hashtable.New(ctx, nil, config)", second(hashtable.New(ctx, nil, config))},
				{`hashtable.Attach(nil, session, "table")`, second(hashtable.Attach(none, w, "table"))},
				{`hashtable.Attach(ctx, w, "table"), where w is of no world.Dial`, second(hashtable.Attach(ctx, w, "table"))},
				{`table.Put(nil, "k", value)`, table.Put(none, "k", nil)},
				{`table.Add(nil, "k", 1)`, second(table.Add(none, "k", 1))},
				{`table.Delete(nil, "k")`, second(table.Delete(none, "k"))},
				{"table.NewBatch().Run(nil)", table.NewBatch().Run(none)},
				{"failed() of table.All(nil)", failed()},
				{"table.StatsOf(nil, 1)", second(table.StatsOf(none, 1))},
				{"table.StatsOf(ctx, 2)", second(table.StatsOf(ctx, 2))},
				{`table.Serve(ctx, listener, "table"), made without Clients`, table.Serve(ctx, nil, "table")},
				{"globalarray.New[int](nil, w, 10, globalarray.Blocks())", second(globalarray.New[int](none, w, 10, globalarray.Blocks()))},
				{"globalarray.New[int](ctx, nil, 10, globalarray.Blocks())", second(globalarray.New[int](ctx, nil, 10, globalarray.Blocks()))},
				{"array.Put(nil, one, 9)", array.Put(none, one, 9)},
				{"array.Put(ctx, one, 10)", array.Put(ctx, one, 10)},
				{"array.Get(nil, one, 9)", array.Get(none, one, 9)},
				{"array.Scatter(nil, one, []int{9})", array.Scatter(none, one, index)},
				{"array.Gather(nil, one, []int{9})", array.Gather(none, one, index)},
				{"array.Gather(ctx, one, []int{10})", array.Gather(ctx, one, []int{10})},
				{"array.Gather(ctx, one, []int{8, 9})", array.Gather(ctx, one, []int{8, 9})},
				{"array.Accumulate(nil, window.Sum, one, []int{9})", array.Accumulate(none, window.Sum, one, index)},
				{"array.FetchAndOp(nil, window.Sum, one, one, []int{9})", array.FetchAndOp(none, window.Sum, one, one, index)},
				{"array.FetchAndOp(ctx, window.Sum, nil, one, []int{9})", array.FetchAndOp(ctx, window.Sum, nil, one, index)},
				{"array.Sync(nil)", array.Sync(none)},
				{"grid.New(nil, w, 6, 6, 1, grid.Fence)", second(grid.New(none, w, 6, 6, 1, grid.Fence))},
				{"grid.New(ctx, nil, 6, 6, 1, grid.Fence)", second(grid.New(ctx, nil, 6, 6, 1, grid.Fence))},
				{"grid.New(ctx, w, 6, 6, 0, grid.Fence)", second(grid.New(ctx, w, 6, 6, 0, grid.Fence))},
				{"field.Exchange(nil)", field.Exchange(none)},
			}
		}
		return errors.Join(w.Barrier(ctx), field.Close(), array.Close(), table.Close())
	}))
	return calls
}

func makingExamples() []call {
	return []call{
		{"hashtable.New(ctx, w, hashtable.Config{})", onEvery(func(ctx context.Context, w *world.World) error {
			return second(hashtable.New(ctx, w, hashtable.Config{}))
		})},
		{"globalarray.New[int](ctx, w, 10, globalarray.Cyclic(0))", onEvery(func(ctx context.Context, w *world.World) error {
			return second(globalarray.New[int](ctx, w, 10, globalarray.Cyclic(0)))
		})},
		{"globalarray.New[int](ctx, w, 10+rank, globalarray.Blocks())", onEvery(func(ctx context.Context, w *world.World) error {
			return second(globalarray.New[int](ctx, w, 10+w.Rank(), globalarray.Blocks()))
		})},
	}
}

// printed is the file.
func printed(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString(misuseHead)
	for _, s := range sections(t) {
		fmt.Fprintf(&text, "\n## %s\n\n", s.title)
		for _, c := range s.calls {
			require.Error(t, c.err, c.text)
			fmt.Fprintf(&text, "- `%s`: %s\n", c.text, ofThisMachine(c.err.Error()))
		}
	}
	return text.String()
}

// ofThisMachine replaces what another machine, or the next run, has otherwise.
func ofThisMachine(text string) string {
	text = regexp.MustCompile(`; it has lo .*`).ReplaceAllString(text, "; it has …")
	text = regexp.MustCompile(`allowed are \[Plain.*\]`).ReplaceAllString(text, "allowed are […]")
	text = regexp.MustCompile(`\[::\]:\d+|0\.0\.0\.0:\d+`).ReplaceAllString(text, "0.0.0.0:…")
	return strings.ReplaceAll(text, "\n", "\n  ")
}

func TestMisuse(t *testing.T) {
	text := printed(t)
	if *rewrite {
		require.NoError(t, os.WriteFile("misuse.md", []byte(text), 0o644))
	}
	kept, err := os.ReadFile("misuse.md")
	require.NoError(t, err)
	// Lines are told one by one, since a difference of two whole texts is longer than what a terminal shows.
	is, want := strings.Split(text, "\n"), strings.Split(string(kept), "\n")
	for i := range min(len(is), len(want)) {
		require.Equal(t, want[i], is[i], "line %d of misuse.md", i+1)
	}
	require.Len(t, is, len(want), "lines of misuse.md")
}

// TestNoTextRepeatsItself reads the kept file, so it finds what was rewritten wrong, too.
func TestNoTextRepeatsItself(t *testing.T) {
	kept, err := os.ReadFile("misuse.md")
	require.NoError(t, err)
	prefix := regexp.MustCompile(`^(world|window|epoch|reduce|aggregate|hashtable|globalarray|grid)$`)
	plural := regexp.MustCompile(`\b1 (ranks|elements|bytes|displacements|slots|notifications|texts|addresses|cards|sessions|seats|names)\b|allowed are (\d+) to (\d+)`)
	for line := range strings.SplitSeq(string(kept), "\n") {
		_, text, found := strings.Cut(line, "`: ")
		if !found {
			continue
		}
		var seen []string
		for part := range strings.SplitSeq(text, ": ") {
			if !prefix.MatchString(part) {
				continue
			}
			require.NotContains(t, seen, part, line)
			seen = append(seen, part)
		}
		for _, m := range plural.FindAllStringSubmatch(text, -1) {
			require.Empty(t, m[1], line)
			require.NotEqual(t, m[2], m[3], line)
		}
	}
}
