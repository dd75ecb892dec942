package window

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/world"
)

// A holdUp holds the first that comes, until it is released.
type holdUp struct {
	once           sync.Once
	came, released chan struct{}
}

func newHoldUp() *holdUp { return &holdUp{came: make(chan struct{}), released: make(chan struct{})} }

func (h *holdUp) stay() { h.once.Do(func() { close(h.came); <-h.released }) }

// A heldContext holds the first that looks whether it has ended. It has ended then if that is its error.
type heldContext struct {
	context.Context
	*holdUp
	err error
}

func (c heldContext) Err() error {
	c.stay()
	return c.err
}

// A heldNeighbor holds the first that wakes it.
type heldNeighbor struct {
	verbs.Neighbor
	*holdUp
}

func (n heldNeighbor) Wake() {
	n.stay()
	n.Neighbor.Wake()
}

// closeUnder closes the World under a call of another goroutine, which is held meanwhile, and gives the error of that.
func closeUnder(ctx context.Context, w *world.World, held *holdUp, call func() error) (result, err error) {
	ended, closed := make(chan error, 1), make(chan error, 1)
	go func() { ended <- call() }()
	<-held.came
	waiting, stop := context.WithCancel(ctx)
	go func() { defer stop(); closed <- w.Close() }()
	err = await.UntilParked(waiting, "awaitReaders", 1)
	select {
	case early := <-closed:
		return nil, fmt.Errorf("the World is closed under a call: %w", errors.Join(early, err))
	default:
	}
	close(held.released)
	return <-ended, errors.Join(err, <-closed)
}

// TestClosedUnderMeetings closes the World while another goroutine of the rank is in a Fence, or a Close, of a window: its memory goes
// when that has noticed it, and no earlier. What a context cuts short just then is over, too.
func TestClosedUnderMeetings(t *testing.T) {
	fence := func(ctx context.Context, win *Window[int64]) error { return win.Fence(ctx) }
	leave := func(ctx context.Context, win *Window[int64]) error { return win.CloseContext(ctx) }
	for _, c := range []struct {
		name string
		call func(ctx context.Context, win *Window[int64]) error
		cut  error
	}{
		{"Fence", fence, nil},
		{"Close", leave, nil},
		{"Fence cut short", fence, context.Canceled},
		{"Close cut short", leave, context.Canceled},
	} {
		for _, device := range []string{"shm", "tcp"} {
			t.Run(c.name+" "+device, func(t *testing.T) {
				require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
					win, err := Allocate[int64](ctx, w, 8)
					if err != nil || w.Rank() == 1 {
						return err
					}
					held := newHoldUp()
					result, err := closeUnder(ctx, w, held, func() error {
						return c.call(heldContext{context.Background(), held, c.cut}, win)
					})
					if !errors.Is(result, ErrClosed) && (c.cut == nil || !errors.Is(result, c.cut)) {
						err = errors.Join(err, fmt.Errorf("error of the call is %w", result))
					}
					if again := win.Close(); !errors.Is(again, ErrClosed) {
						err = errors.Join(err, fmt.Errorf("error of a late Close is %w", again))
					}
					return err
				}, world.WithDevice(device)))
			})
		}
	}
}

// TestClosedUnderParting closes the World while a Close of a window that a failure has broken writes to another rank.
func TestClosedUnderParting(t *testing.T) {
	held := newHoldUp()
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 8)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			// Nothing is written to one that has left.
			<-held.came
			return nil
		}
		p, err := win.core.peer(1)
		if err != nil {
			return err
		}
		p.neighbor = heldNeighbor{p.neighbor, held}
		win.core.broken = errors.New("a rank has failed")
		result, err := closeUnder(ctx, w, held, win.Close)
		return errors.Join(result, err)
	}))
}

// TestClosedUnderFlush ends a rank of which another goroutine is in a call that waits for the answer of a rank which serves nothing: that
// waits no more, however long its context lasts.
func TestClosedUnderFlush(t *testing.T) {
	background := context.Background()
	ofJob := func(_ context.Context, w *world.World) (*world.World, error) { return w, nil }
	ofTeam := func(ctx context.Context, w *world.World) (*world.World, error) { return w.Split(ctx, 0, 0) }
	for _, c := range []struct {
		name string
		over func(ctx context.Context, w *world.World) (*world.World, error)
		open func(ctx context.Context, win *Window[int64]) error
		call func(win *Window[int64]) error
	}{
		{
			"Fence", ofJob,
			func(ctx context.Context, win *Window[int64]) error { return win.Fence(ctx) },
			func(win *Window[int64]) error { return win.Fence(background) },
		},
		{
			"Fence of a team", ofTeam,
			func(ctx context.Context, win *Window[int64]) error { return win.Fence(ctx) },
			func(win *Window[int64]) error { return win.Fence(background) },
		},
		{
			"Flush", ofJob,
			func(ctx context.Context, win *Window[int64]) error { return win.LockAll(ctx, NoCheck) },
			func(win *Window[int64]) error { return win.Flush(background, 1) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			errGivenUp := errors.New("body gives up")
			serves := newHoldUp()
			release := sync.OnceFunc(func() { close(serves.released) })
			defer release()
			called, ran := make(chan error, 1), make(chan error, 1)
			go func() {
				ran <- world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
					w, err := c.over(ctx, w)
					if err != nil {
						return err
					}
					win, err := Allocate[int64](ctx, w, 8)
					if err == nil {
						err = errors.Join(c.open(ctx, win), w.Barrier(ctx))
					}
					if err != nil {
						return err
					}
					if w.Rank() == 1 {
						job.Of(w).Exclude(serves.stay)
						return nil
					}
					<-serves.came
					if err := win.Put([]int64{1}, 1, 0); err != nil {
						return err
					}
					// By tally a Fence would not wait for an answer.
					win.core.tallies.on.Store(false)
					go func() { called <- c.call(win) }()
					return errors.Join(await.UntilParked(ctx, "job.(*Link).await", 1), errGivenUp)
				}, world.WithDevice("tcp"))
			}()
			require.ErrorIs(t, await.Receive(t, "the call to end", called), ErrClosed)
			release()
			require.ErrorIs(t, await.Receive(t, "the ranks to end", ran), errGivenUp)
		})
	}
}

// TestClosedBesideOnClose closes a World of which a function of OnClose waits for a goroutine of the rank, which waits for the rank
// itself.
func TestClosedBesideOnClose(t *testing.T) {
	started := make(chan error, 1)
	ran := make(chan error, 1)
	go func() {
		ran <- world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
			var result error
			job.Of(w).OnClose(func() error { result = <-started; return nil })
			self, err := epoch.NewGroup(1, 0)
			if err != nil {
				return err
			}
			win, err := Allocate[int64](ctx, w, 1)
			if err != nil {
				return err
			}
			go func() { started <- win.Start(context.Background(), self) }()
			err = await.UntilParked(ctx, "window.(*untyped).Start", 1)
			err = errors.Join(err, w.Close())
			if !errors.Is(result, ErrClosed) {
				err = errors.Join(err, fmt.Errorf("error of Start is %w", result))
			}
			return err
		})
	}()
	require.NoError(t, await.Receive(t, "the World to be closed", ran))
}

// An endingContext ends the goroutine that looks whether it has ended.
type endingContext struct {
	context.Context
	end func()
}

func (c endingContext) Err() error {
	c.end()
	return nil
}

// TestUnwound ends the body of a rank within a Fence, and a Close: nothing waits for that.
func TestUnwound(t *testing.T) {
	for _, end := range []struct {
		name, want string
		end        func()
	}{
		{"panic", "panic: enough", func() { panic("enough") }},
		{"Goexit", "body ended its goroutine", runtime.Goexit},
	} {
		for name, call := range map[string]func(ctx context.Context, win *Window[int64]) error{
			"Fence": func(ctx context.Context, win *Window[int64]) error { return win.Fence(ctx) },
			"Close": func(ctx context.Context, win *Window[int64]) error { return win.CloseContext(ctx) },
		} {
			t.Run(name+" "+end.name, func(t *testing.T) {
				ran := make(chan error, 1)
				go func() {
					ran <- world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
						win, err := Allocate[int64](ctx, w, 8)
						if err != nil || w.Rank() == 1 {
							return err
						}
						return call(endingContext{ctx, end.end}, win)
					})
				}()
				require.ErrorContains(t, await.Receive(t, "the ranks to end", ran), end.want)
			})
		}
	}
}
