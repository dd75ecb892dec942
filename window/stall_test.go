package window_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// namesAbsentRank matches an error of Close in rank 0 or 2 of 3, which may wait for the other one, too.
var namesAbsentRank = regexp.MustCompile(`it waits for (rank 1|ranks 0 1|ranks 1 2)\b`)

// A Close that its context cuts short takes nothing more, and another goes on where it stopped; rank 1 hears from the others by
// what they put into its memory.
var closedInTime = jobtest.Register("closed in time", func(ctx context.Context, w *world.World) error {
	flags, err := window.Allocate[int64](ctx, w, 1)
	if err != nil {
		return err
	}
	win, err := window.Allocate[int64](ctx, w, 1)
	if err != nil {
		return err
	}
	// Each has looked at memory of rank 1.
	err = errors.Join(flags.LockAll(ctx), flags.Accumulate(window.Sum, []int64{0}, 1, 0), flags.Flush(ctx, 1))
	if w.Rank() == 1 {
		err = errors.Join(err, await.Until(ctx, "the others to be cut short", func() bool {
			var cut int64
			return flags.FetchAndOp(window.NoOp, 0, &cut, 1, 0) == nil && flags.Flush(ctx, 1) == nil && cut == 2
		}))
		return errors.Join(err, flags.UnlockAll(ctx), win.Close(), flags.Close())
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // expires
	defer cancel()
	if cut := win.CloseContext(short); !errors.Is(cut, context.DeadlineExceeded) || !strings.Contains(cut.Error(), "rank") {
		err = errors.Join(err, fmt.Errorf("Close while rank 1 is away: %w", cut))
	} else if w.Mapped(1) && !namesAbsentRank.MatchString(cut.Error()) {
		err = errors.Join(err, fmt.Errorf("Close does not say that it waits for rank 1: %w", cut))
	}
	for _, late := range []error{win.Put([]int64{1}, 1, 0), win.Fence(ctx)} {
		if !errors.Is(late, epoch.ErrClosed) {
			err = errors.Join(err, fmt.Errorf("a call behind Close: %w", late))
		}
	}
	err = errors.Join(err, flags.Accumulate(window.Sum, []int64{1}, 1, 0), flags.UnlockAll(ctx), win.Close())
	if again := win.Close(); !errors.Is(again, epoch.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("a third Close: %w", again))
	}
	return errors.Join(err, flags.Close())
})

func TestCloseContext(t *testing.T) {
	jobtest.Goroutines(t, 3, closedInTime)
	jobtest.Processes(t, 3, closedInTime)
	jobtest.TCP(t, 3, closedInTime)
}

// A World closes what an interrupted Close has left.
func TestCloseContextLeft(t *testing.T) {
	for _, options := range [][]world.Option{nil, {world.WithDevice("tcp"), world.WithAddress("127.0.0.1")}} {
		var cut atomic.Bool
		require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int64](ctx, w, 1)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				return errors.Join(await.Until(ctx, "the other to be cut short", cut.Load), win.Close())
			}
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // expires
			defer cancel()
			if err := win.CloseContext(short); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("Close while rank 1 is away: %w", err)
			}
			cut.Store(true)
			if err := w.Close(); err != nil {
				return err
			}
			if err := win.Close(); !errors.Is(err, epoch.ErrClosed) {
				return fmt.Errorf("Close behind that of the World: %w", err)
			}
			return nil
		}, options...))
	}
}

// A buffer is for several goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *buffer) count(text string) int {
	return strings.Count(b.String(), text)
}

// has reports whether a line has two texts.
func (b *buffer) has(first, second string) bool {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, first) && strings.Contains(line, second) {
			return true
		}
	}
	return false
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A stallCase has a call of rank 0 wait for rank 1, which is in no call of the library.
type stallCase struct {
	name string
	// before is a call of rank 1 that does not wait, after one for which that of rank 0 waits. A nil one does nothing.
	before, call, after onWindow
	// mapped and tcp name the call of rank 0 that waits in each form, empty if none does.
	mapped, tcp string
}

type onWindow = func(ctx context.Context, win *window.Window[int64]) error

// stallCases have every kind of call that waits. Over TCP what asks for a lock or a post goes with the operations.
func stallCases() []stallCase {
	fence := func(ctx context.Context, win *window.Window[int64]) error { return win.Fence(ctx, window.NoSucceed) }
	end := func(_ context.Context, win *window.Window[int64]) error { return win.Close() }
	lock := func(ctx context.Context, win *window.Window[int64]) error { return win.Lock(ctx, window.Exclusive, 1) }
	unlock := func(ctx context.Context, win *window.Window[int64]) error { return win.Unlock(ctx, 1) }
	cases := []stallCase{
		{"Fence", nil, fence, fence, "Fence", "Fence"},
		{"WaitNotify", nil, func(ctx context.Context, win *window.Window[int64]) error { return win.WaitNotify(ctx, 0, 1) }, notifyOnce, "WaitNotify", "WaitNotify"},
		{"Lock", lock, func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Lock(ctx, window.Exclusive, 1), win.Put([]int64{1}, 1, 0), win.Unlock(ctx, 1))
		}, unlock, "Lock", "Unlock"},
		{"LockOwn", func(ctx context.Context, win *window.Window[int64]) error {
			// What asks for the lock goes with the operation that is flushed.
			var old int64
			return errors.Join(win.Lock(ctx, window.Exclusive, 0), win.FetchAndOp(window.NoOp, 0, &old, 0, 0), win.Flush(ctx, 0))
		}, func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Lock(ctx, window.Exclusive, 0), win.Unlock(ctx, 0))
		}, func(ctx context.Context, win *window.Window[int64]) error { return win.Unlock(ctx, 0) }, "Lock", "Lock"},
		{"LockAll", lock, func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.LockAll(ctx), win.Put([]int64{1}, 1, 0), win.UnlockAll(ctx))
		}, unlock, "LockAll", "LockAll"},
		{"Wait", nil, func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Post(ctx, group(1)), win.Wait(ctx))
		}, func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Start(ctx, group(0)), win.Complete(ctx))
		}, "Wait", "Wait"},
		{"Start", nil, func(ctx context.Context, win *window.Window[int64]) error {
			// The result comes only once rank 1 has posted.
			return errors.Join(win.Start(ctx, group(1)), win.Get(make([]int64, 1), 1, 0), win.Complete(ctx))
		}, func(ctx context.Context, win *window.Window[int64]) error {
			return errors.Join(win.Post(ctx, group(0)), win.Wait(ctx))
		}, "Start", "Complete"},
		{"Close", nil, end, end, "Close", "Close"},
	}
	// On mapped memory the lock is there before these.
	for name, wait := range map[string]onWindow{
		"Flush":         func(ctx context.Context, win *window.Window[int64]) error { return win.Flush(ctx, 1) },
		"FlushAll":      func(ctx context.Context, win *window.Window[int64]) error { return win.FlushAll(ctx) },
		"FlushLocal":    func(ctx context.Context, win *window.Window[int64]) error { return win.FlushLocal(ctx, 1) },
		"FlushLocalAll": func(ctx context.Context, win *window.Window[int64]) error { return win.FlushLocalAll(ctx) },
	} {
		cases = append(cases, stallCase{name, lock, func(ctx context.Context, win *window.Window[int64]) error {
			got := make([]int64, 1)
			return errors.Join(win.Lock(ctx, window.Shared, 1), win.Get(got, 1, 0), wait(ctx, win), win.Unlock(ctx, 1))
		}, unlock, "", name})
	}
	for name, wait := range map[string]func(ctx context.Context, r window.Request) error{
		"Request.Wait": func(ctx context.Context, r window.Request) error { return r.Wait(ctx) },
		"WaitAll":      func(ctx context.Context, r window.Request) error { return window.WaitAll(ctx, r) },
		"WaitAny": func(ctx context.Context, r window.Request) error {
			_, err := window.WaitAny(ctx, r)
			return err
		},
	} {
		cases = append(cases, stallCase{name, lock, func(ctx context.Context, win *window.Window[int64]) error {
			locked := win.Lock(ctx, window.Shared, 1)
			r, err := win.RGet(make([]int64, 1), 1, 0)
			return errors.Join(locked, err, wait(ctx, r), win.Unlock(ctx, 1))
		}, unlock, "", name})
	}
	return cases
}

// Each call that waits says for which rank: here for rank 1, which computes and holds a lock.
func TestStallNamesRank(t *testing.T) {
	for _, c := range stallCases() {
		for form, options := range map[string][]world.Option{"mapped": nil, "tcp": {world.WithDevice("tcp"), world.WithAddress("127.0.0.1")}} {
			waits := c.mapped
			if form == "tcp" {
				waits = c.tcp
			}
			if waits == "" {
				continue
			}
			t.Run(c.name+" "+form, func(t *testing.T) {
				t.Parallel()
				var log buffer
				var inNoCall atomic.Bool
				require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
					win, err := window.Allocate[int64](ctx, w, 1, window.Notifications(1))
					if err != nil {
						return err
					}
					if c.before != nil && w.Rank() == 1 {
						err = c.before(ctx, win)
					}
					if err = errors.Join(err, w.Barrier(ctx)); err != nil {
						return err
					}
					if w.Rank() == 0 {
						err = await.Until(ctx, "rank 1 to be in no call", inNoCall.Load)
						return errors.Join(err, c.call(ctx, win), closed(win, c.name))
					}
					inNoCall.Store(true)
					line := fmt.Sprintf(`rank=0 call=window.%s `, waits)
					err = await.Until(ctx, "the report", func() bool { return log.count(line) == 1 })
					if text := `"waits for"="rank 1 (in no call of the library)"`; !log.has(line, text) {
						err = errors.Join(err, fmt.Errorf("no %s in %s", text, &log))
					}
					return errors.Join(err, c.after(ctx, win), closed(win, c.name))
				}, append(options, world.WithStall(300*time.Millisecond), world.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...))
			})
		}
	}
}

// A Fence is not compared with one of another window, nor with a collective of the World: a rank may make both, each in a goroutine. The
// report of each rank names the other.
func TestStallOfCrossedCalls(t *testing.T) {
	type made = [2]*window.Window[int64]
	for name, other := range map[string]func(ctx context.Context, w *world.World, windows made) error{
		"Fence": func(ctx context.Context, _ *world.World, windows made) error {
			return windows[1].Fence(ctx, window.NoSucceed)
		},
		"Barrier": func(ctx context.Context, w *world.World, _ made) error { return w.Barrier(ctx) },
		"Allocate": func(ctx context.Context, w *world.World, _ made) error {
			win, err := window.Allocate[int64](ctx, w, 1)
			if err == nil {
				err = win.Close()
			}
			return err
		},
	} {
		for form, options := range map[string][]world.Option{"mapped": nil, "tcp": {world.WithDevice("tcp"), world.WithAddress("127.0.0.1")}} {
			t.Run(name+" "+form, func(t *testing.T) {
				t.Parallel()
				var log buffer
				require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
					var windows made
					for i := range windows {
						var err error
						if windows[i], err = window.Allocate[int64](ctx, w, 1); err != nil {
							return err
						}
					}
					fence := func(ctx context.Context) error { return windows[0].Fence(ctx, window.NoSucceed) }
					another := func(ctx context.Context) error { return other(ctx, w, windows) }
					if w.Rank() == 1 {
						fence, another = another, fence
					}
					// Another goroutine of the rank makes the call that the other one waits for.
					meets := make(chan error, 1)
					go func() {
						err := await.Until(ctx, "a report of each", func() bool {
							return log.has(`"a call waits long" rank=0 `, "rank 1 (in ") && log.has(`"a call waits long" rank=1 `, "rank 0 (in ")
						})
						meets <- errors.Join(err, another(ctx))
					}()
					return errors.Join(fence(ctx), <-meets, windows[0].Close(), windows[1].Close())
				}, append(options, world.WithStall(300*time.Millisecond), world.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...))
			})
		}
	}
}

// silent takes the requests of a client, and answers none.
type silent struct{}

func (silent) Serve(*job.Link, *job.Message, []byte) error { return nil }

// So does a client whose server does not answer.
func TestStallInAttach(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	served := make(chan error, 1)
	go func() {
		s, err := job.ListenerOf(l).Accept(t.Context())
		if err != nil {
			served <- err
			return
		}
		stop := s.World().Serve(s.World().NewNumber(), silent{})
		err = s.Begin()
		<-s.Left()
		stop()
		served <- errors.Join(err, s.World().Close())
	}()
	var log buffer
	w, err := world.Dial(t.Context(), l.Addr().String(), world.WithoutKey(), world.WithStall(300*time.Millisecond), world.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	attached := make(chan error, 1)
	go func() {
		_, err := window.Attach[int64](ctx, w, "counters")
		attached <- err
	}()
	await.True(t, "the report", func() bool {
		return log.has("rank=1 call=window.Attach ", `"waits for"="rank 0 (in no call of the library)"`)
	})
	cancel()
	require.ErrorIs(t, await.Receive(t, "the end of Attach", attached), context.Canceled)
	require.NoError(t, w.Close())
	require.NoError(t, await.Receive(t, "the end of the session", served))
}

func notifyOnce(ctx context.Context, win *window.Window[int64]) error {
	return errors.Join(win.Lock(ctx, window.Shared, 0), win.PutNotify([]int64{1}, 0, 0, 0), win.Unlock(ctx, 0))
}

func group(rank int) window.Group {
	g, err := epoch.NewGroup(2, rank)
	if err != nil {
		panic(err)
	}
	return g
}

// closed closes a window that a call has not closed.
func closed(win *window.Window[int64], call string) error {
	if call == "Close" {
		return nil
	}
	return win.Close()
}

// A lookedAt context calls f when it is looked at for the first time.
type lookedAt struct {
	context.Context
	once *sync.Once
	f    func()
}

func (c *lookedAt) Err() error {
	c.once.Do(c.f)
	return c.Context.Err()
}

// A rank that backs the memory of a window is said to be in the call that does.
func TestStallWhileBacking(t *testing.T) {
	if testsize.Race {
		t.Skip("skipped: the race detector sees memory of the Go heap only, which is not backed in pieces")
	}
	for form, options := range map[string][]world.Option{"mapped": nil, "tcp": {world.WithDevice("tcp"), world.WithAddress("127.0.0.1")}} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			var log buffer
			var backing atomic.Bool
			require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
				own, bytes := ctx, 0
				var looked error
				if w.Rank() == 0 {
					if err := await.Until(ctx, "rank 1 to back its memory", backing.Load); err != nil {
						return err
					}
				} else {
					bytes = severalPieces
					own = &lookedAt{ctx, new(sync.Once), func() {
						backing.Store(true)
						const line, text = "rank=0 call=window.Allocate ", `"waits for"="rank 1 (in window.Allocate)"`
						looked = await.Until(ctx, "the report", func() bool { return log.count(line) == 1 })
						if !log.has(line, text) {
							looked = errors.Join(looked, fmt.Errorf("no %s in %s", text, &log))
						}
					}}
				}
				win, err := window.Allocate[byte](own, w, bytes)
				if err = errors.Join(looked, err); err != nil {
					return err
				}
				return win.Close()
			}, append(options, world.WithStall(time.Millisecond), world.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))...))
		})
	}
}
