package job

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
)

// A recorder collects what is logged.
type recorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

// lines are those that contain a text.
func (r *recorder) lines(text string) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.text.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (r *recorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(r, nil)) }

// reported returns when there is a line of each of some ranks in a call, and gives an error if one lacks a text.
func (r *recorder) reported(ctx context.Context, call, text string, ranks ...string) error {
	for _, rank := range ranks {
		var lines []string
		err := await.Until(ctx, "the report of rank "+rank, func() bool {
			lines = r.lines("rank=" + rank + " call=" + call + " ")
			return len(lines) > 0
		})
		if err == nil && (len(lines) > 1 || !strings.Contains(lines[0], text)) {
			err = errors.New(strings.Join(lines, ""))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// forms are options under which ranks map each other's memory, and under which they do not.
var forms = map[string]func() []Option{
	"mapped": func() []Option { return nil },
	"apart":  apart,
}

// A call that waits says once for which rank, and which call that is in, if in any.
func TestStall(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log recorder
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				if w.rank == 0 {
					return w.Barrier(ctx)
				}
				return errors.Join(log.reported(ctx, "world.Barrier", "rank 1 (in no call of the library)", "0"), w.Barrier(ctx))
			}, append(options(), WithStall(time.Millisecond), WithLogger(log.logger()))...))
		})
	}
}

// What ranks say of one that waits itself is the call that it waits in.
func TestStallInCall(t *testing.T) {
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log recorder
			var waits atomic.Bool
			var made atomic.Int32
			blocks := [2][]byte{make([]byte, MeetingBytes), make([]byte, MeetingBytes)}
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				m := w.NewMeeting(w.NewNumber(), blocks[w.rank], NoTally, func(rank int) ([]byte, error) { return blocks[rank], nil })
				defer m.Close()
				// No rank may tell another before that has made the meeting. A Barrier would be reported, too.
				made.Add(1)
				if err := await.Until(ctx, "both to have made the meeting", func() bool { return made.Load() == 2 }); err != nil {
					return err
				}
				if w.rank == 0 {
					err := await.Until(ctx, "rank 1 to wait", waits.Load)
					return errors.Join(err, w.Barrier(ctx), m.Meet(ctx, "window.Fence", 0, 1), w.Barrier(ctx))
				}
				short, cancel := context.WithCancel(ctx)
				done := make(chan error, 1)
				go func() {
					defer cancel()
					err := await.Until(ctx, "rank 1 to wait", func() bool { return w.waitingCalls.last() != nil })
					waits.Store(true)
					done <- errors.Join(err, log.reported(ctx, "world.Barrier", "rank 1 (in world.Meeting.Meet for rank 0)", "0"))
				}()
				err := m.Meet(short, "window.Fence", 0, 1)
				if errors.Is(err, context.Canceled) {
					err = nil
				}
				return errors.Join(err, w.Barrier(ctx), m.Meet(ctx, "window.Fence", 0, 1), w.Barrier(ctx), <-done)
			}, append(options(), WithStall(time.Millisecond), WithLogger(log.logger()))...))
		})
	}
}

// In virtual time the report takes none, and comes at its time.
func TestStallSimulated(t *testing.T) {
	run := func(stall time.Duration) (log *recorder, took time.Duration) {
		log = new(recorder)
		require.NoError(t, Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 3, func(ctx context.Context, w *World) error {
			if w.rank == 1 {
				w.Compute(20 * time.Second)
			}
			err := w.Barrier(ctx)
			took = w.Now()
			return err
		}, WithStall(stall), WithLogger(log.logger())))
		return log, took
	}
	silent, took := run(0)
	require.Empty(t, silent.lines(""))
	told, same := run(DefaultStall)
	require.Equal(t, took, same)
	require.NoError(t, told.reported(t.Context(), "world.Barrier", "for=10", "0", "2"))
	require.Len(t, told.lines(""), 2)
	require.NoError(t, told.reported(t.Context(), "world.Barrier", "rank 1 (in no call of the library)", "2"))
}

// The error of a deadlock names the call of each rank, and what it waits for.
func TestDeadlockNamesCalls(t *testing.T) {
	err := Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 3, func(ctx context.Context, w *World) error {
		if w.rank != 1 {
			return w.Barrier(ctx)
		}
		block := make([]byte, MeetingBytes)
		return w.NewMeeting(w.NewNumber(), block, NoTally, func(int) ([]byte, error) { return block, nil }).Meet(ctx, "window.Fence", 0, 1)
	}, WithStall(0))
	require.ErrorIs(t, err, ErrDeadlock)
	require.ErrorContains(t, err, "rank 0 in world.Barrier waits for rank 1; rank 1 in world.Meeting.Meet waits for rank 0; rank 2 in world.Barrier waits for rank 1")
}

// So does every error of ranks that go on, each in turn into the next deadlock.
func TestEveryDeadlockNamesCalls(t *testing.T) {
	var errs []error
	require.NoError(t, Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 2, func(ctx context.Context, w *World) error {
		block := make([]byte, MeetingBytes)
		m := w.NewMeeting(w.NewNumber(), block, NoTally, func(int) ([]byte, error) { return block, nil })
		defer m.Close()
		for range 3 {
			if w.rank == 0 {
				errs = append(errs, w.Barrier(ctx))
			} else {
				errs = append(errs, m.Meet(ctx, "window.Fence", 0, 1))
			}
		}
		return nil
	}, WithStall(0)))
	require.Len(t, errs, 6)
	// Rank 1 finds each deadlock, and leaves; rank 0 has waited for it.
	for i, err := range errs {
		if i >= 3 {
			require.ErrorIs(t, err, ErrLeft)
			continue
		}
		require.ErrorIs(t, err, ErrDeadlock)
		require.ErrorContains(t, err, "rank 0 in world.")
		require.ErrorContains(t, err, "; rank 1 in world.")
	}
}

// So does that of a deadlock in a World that Shrink has given, by the numbers of the job that began. Reports of stalls name
// ranks by their numbers in the job that the caller is in.
func TestDeadlockNamesCallsAfterShrink(t *testing.T) {
	var log recorder
	err := Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 4, func(ctx context.Context, w *World) error {
		if w.rank == 0 {
			return nil
		}
		small, err := w.Shrink(ctx)
		if err != nil {
			return err
		}
		if small.rank != 1 {
			return small.Barrier(ctx)
		}
		block := make([]byte, MeetingBytes)
		return small.NewMeeting(small.NewNumber(), block, NoTally, func(int) ([]byte, error) { return block, nil }).Meet(ctx, "window.Fence", 0, 1)
	}, WithLogger(log.logger()))
	require.ErrorIs(t, err, ErrDeadlock)
	require.ErrorContains(t, err, "rank 1 in world.Barrier waits for rank 2; rank 2 in world.Meeting.Meet waits for rank 1; rank 3 in world.Barrier waits for rank 2")
	require.NoError(t, log.reported(t.Context(), "world.Barrier", "rank 1 (in world.Meeting.Meet for rank 0)", "2"))
}

// A report says of a rank that gives no answer that it does not.
func TestStallUnanswered(t *testing.T) {
	t.Parallel()
	worlds := quiet(t)
	w := worlds[0]
	ended := make(chan []string)
	go func() { ended <- w.statesOf(w.asking(longestCallAsk), []int{1}) }()
	require.Equal(t, []string{"does not answer"}, await.Receive(t, "the answer", ended))
}

// What RMA_STALL may be.
func TestStallSetting(t *testing.T) {
	for text, want := range map[string]time.Duration{"": DefaultStall, "0": 0, "1m": time.Minute, "250ms": 250 * time.Millisecond} {
		t.Setenv("RMA_STALL", text)
		s, err := newSettings(nil)
		require.NoError(t, err)
		require.Equal(t, want, s.stall)
	}
	for _, text := range []string{"10", "-1s", "soon"} {
		t.Setenv("RMA_STALL", text)
		_, err := newSettings(nil)
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, "RMA_STALL")
	}
	t.Setenv("RMA_STALL", "1m")
	s, err := newSettings([]Option{WithStall(time.Second)})
	require.NoError(t, err)
	require.Equal(t, time.Second, s.stall)
	_, err = newSettings([]Option{WithStall(-1)})
	require.ErrorIs(t, err, ErrArgument)
}

// Without an option warnings go to the logger of the program, and nothing else; nil is silence.
func TestDefaultLogger(t *testing.T) {
	var log recorder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	defer slog.SetDefault(before)
	s, err := newSettings(nil)
	require.NoError(t, err)
	silent, err := newSettings([]Option{WithLogger(nil)})
	require.NoError(t, err)
	for _, logger := range []*slog.Logger{s.logger, s.logger.With("a", 1).WithGroup("b"), silent.logger} {
		logger.Debug("x")
		logger.Info("x")
		logger.Warn("x")
	}
	require.Len(t, log.lines(""), 2)
	require.Len(t, log.lines("level=WARN"), 2)
}

// A name is what a program calls a function; a wait of the library's own goroutine has none.
func TestCallNames(t *testing.T) {
	const world, window, job = "github.com/onesided/rma/world.", "github.com/onesided/rma/window.", "github.com/onesided/rma/internal/job."
	for function, want := range map[string]string{
		world + "(*World).Barrier": "world.Barrier", job + "(*World).Barrier": "world.Barrier", world + "AllReduce[...]": "world.AllReduce", window + "(*untyped).Fence": "window.Fence",
		window + "(*Window[...]).PutNotify": "window.PutNotify", window + "Request.Wait": "window.Request.Wait", window + "(*pending).completed": "window.Completed", job + "(*World).CloseOwn": "world.Close",
		window + "(*untyped).Fence.func1": "", world + "inJob.func1": "", job + "runRank": "", job + "(*Link).Flush": "", job + "(*Region).Deregister": "", job + "(*Waiter).Pause": "", window + "(*untyped).Fence-range1": "",
	} {
		name, own := exportedName(function)
		require.True(t, own, function)
		require.Equal(t, want, name, function)
	}
	for _, function := range []string{"main.main", "github.com/onesided/rma/window_test.TestX", "sync.(*WaitGroup).Go.func1", ""} {
		_, own := exportedName(function)
		require.False(t, own, function)
	}
}

// A Close that its context cuts short names a rank that has not come, and another goes on where it stopped.
func TestCloseContext(t *testing.T) {
	t.Parallel()
	for name, options := range forms {
		for _, team := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " team"}[team], func(t *testing.T) {
				t.Parallel()
				var cut atomic.Int32
				require.NoError(t, Run(t.Context(), 3, func(ctx context.Context, w *World) error {
					if team {
						var err error
						if w, err = w.Split(ctx, 0, w.rank); err != nil {
							return err
						}
					}
					if w.rank == 1 {
						return errors.Join(await.Until(ctx, "the others to be cut short", func() bool { return cut.Load() == 2 }), w.Close())
					}
					short, cancel := context.WithTimeout(ctx, 300*time.Millisecond) // expires
					defer cancel()
					err := w.CloseContext(short)
					if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "rank") {
						return errors.Join(errors.New("closed with rank 1 away"), err)
					}
					cut.Add(1)
					if err := w.Barrier(ctx); !errors.Is(err, ErrClosed) {
						return errors.Join(errors.New("a Barrier after Close"), err)
					}
					return errors.Join(w.CloseContext(ctx), w.Close())
				}, options()...))
			})
		}
	}
}

// A Close says of a team, too, that it waits, though it looks again and again whether somebody deserts it.
func TestStallInClose(t *testing.T) {
	t.Parallel()
	for _, team := range []bool{false, true} {
		var log recorder
		require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
			if team {
				var err error
				if w, err = w.Split(ctx, 0, w.rank); err != nil {
					return err
				}
			}
			if w.rank == 1 {
				return errors.Join(log.reported(ctx, "world.CloseContext", "rank 1 (in no call of the library)", "0"), w.Close())
			}
			return w.CloseContext(ctx)
		}, WithStall(time.Second), WithLogger(log.logger())))
	}
}

// A Close that waits in a team, which it closes itself, is named by what the program calls.
func TestStallInCloseOfOpenTeam(t *testing.T) {
	t.Parallel()
	var log recorder
	require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if _, err := w.Split(ctx, 0, w.rank); err != nil {
			return err
		}
		if w.rank == 1 {
			return errors.Join(log.reported(ctx, "world.Close", "rank 1 (in no call of the library)", "0"), w.Close())
		}
		return w.Close()
	}, WithStall(time.Second), WithLogger(log.logger())))
	require.Empty(t, log.lines("world.CloseContext"))
}

// CloseContext of a World that is closed returns nil, even where its context is over, and that of a nil World is an error.
func TestCloseContextOver(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, Run(t.Context(), 1, func(_ context.Context, w *World) error {
		if err := w.Close(); err != nil {
			return err
		}
		for range 100 {
			if err := w.CloseContext(over); err != nil {
				return err
			}
		}
		return nil
	}))
	var none *World
	require.ErrorIs(t, none.CloseContext(t.Context()), ErrArgument)
}
