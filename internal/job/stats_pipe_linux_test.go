package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/world"
)

// pipeForms are how the ranks of a job in this process find each other.
var pipeForms = map[string][]world.Option{"mapped": nil, "tcp": {world.WithDevice("tcp")}}

// The tables of all ranks go to who reads a named pipe when they begin.
func TestStatsToPipe(t *testing.T) {
	for form, options := range pipeForms {
		t.Run(form, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(name, 0o600))
			t.Setenv("RMA_STATS", name)
			// It does not wait for a writer, of whom there is none yet.
			reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			require.NoError(t, err)
			defer reader.Close()
			require.NoError(t, world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }, options...))
			text, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.Equal(t, 2, strings.Count(string(text), "collective calls"), "%s", text)
		})
	}
}

// A rank keeps the pipe open from its beginning until it has written its table: a reader that reads meanwhile sees no end.
func TestStatsPipeIsHeld(t *testing.T) {
	forms := map[string]func(ctx context.Context, body func(context.Context, *world.World) error) error{
		"simulated": func(ctx context.Context, body func(context.Context, *world.World) error) error {
			return world.Simulate(ctx, simtest.New(t, "ndr-2024", 1), 1, body)
		},
		"shrunk": func(ctx context.Context, body func(context.Context, *world.World) error) error {
			return world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
				small, err := w.Shrink(ctx)
				if err != nil {
					return err
				}
				return errors.Join(w.Close(), body(ctx, small), small.Close())
			})
		},
	}
	for form, options := range pipeForms {
		forms[form] = func(ctx context.Context, body func(context.Context, *world.World) error) error {
			return world.Run(ctx, 1, body, options...)
		}
	}
	for form, run := range forms {
		t.Run(form, func(t *testing.T) {
			reader := statsPipe(t)
			require.NoError(t, run(t.Context(), func(context.Context, *world.World) error {
				if _, ended := readPipe(t, reader); ended {
					return errors.New("the reader has seen an end")
				}
				return nil
			}))
			text, ended := readPipe(t, reader)
			require.True(t, ended)
			require.Contains(t, text, "collective calls")
		})
	}
}

// One descriptor of the pipe is for all ranks of a simulation, of which there may be more than a process may have descriptors.
func TestSimulatedRanksShareStatsPipe(t *testing.T) {
	statsPipe(t)
	name := os.Getenv("RMA_STATS")
	open := func() (n int, err error) {
		const descriptors = "/proc/self/fd"
		entries, err := os.ReadDir(descriptors)
		for _, entry := range entries {
			// That of ReadDir is closed by now.
			if target, err := os.Readlink(filepath.Join(descriptors, entry.Name())); err == nil && target == name {
				n++
			}
		}
		return n, err
	}
	before, err := open()
	require.NoError(t, err)
	require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), 8, func(ctx context.Context, w *world.World) error {
		small, err := w.Shrink(ctx)
		if err != nil {
			return err
		}
		if err := small.Barrier(ctx); err != nil {
			return err
		}
		n, err := open()
		if err == nil && n != before+1 {
			err = fmt.Errorf("%d descriptors of the pipe are open, there were %d before", n, before)
		}
		return errors.Join(err, small.Close())
	}))
}

// A World of Shrink whose Close its context has cut short ends with the body, and lets go of its pipe.
func TestStatsPipeOfCutClose(t *testing.T) {
	for form, options := range pipeForms {
		t.Run(form, func(t *testing.T) {
			reader := statsPipe(t)
			cut := make(chan struct{})
			require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
				small, err := w.Shrink(ctx)
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					<-cut
					return nil
				}
				ended, end := context.WithCancel(ctx)
				end()
				defer close(cut)
				if err := small.CloseContext(ended); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("Close ends with %w", err)
				}
				return nil
			}, options...))
			text, ended := readPipe(t, reader)
			require.True(t, ended, "a World holds the pipe")
			require.Equal(t, 4, strings.Count(text, "collective calls"), "%s", text)
		})
	}
}

// A World that Shrink has made of a team ends with the body, whether the team is open or closed, and lets go of its pipe.
func TestStatsPipeOfShrunkTeam(t *testing.T) {
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprintf("closed %v", closes), func(t *testing.T) {
			reader := statsPipe(t)
			require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
				team, err := w.Split(ctx, 0, 0)
				if err != nil {
					return err
				}
				if _, err = team.Shrink(ctx); err != nil || !closes {
					return err
				}
				return team.Close()
			}))
			text, ended := readPipe(t, reader)
			require.True(t, ended, "a World holds the pipe")
			require.Equal(t, 4, strings.Count(text, "collective calls"), "%s", text)
		})
	}
}

// statsPipe has tables go to a new named pipe, and opens that for reading.
func statsPipe(t *testing.T) (reader int) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	t.Setenv("RMA_STATS", name)
	reader, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Close(reader)) })
	return reader
}

// readPipe returns what is in a pipe, and reports whether nothing more comes, because no process has it open for writing.
func readPipe(t *testing.T, reader int) (text string, ended bool) {
	t.Helper()
	for {
		buffer := make([]byte, 1<<12)
		n, err := syscall.Read(reader, buffer)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return text, false
		case err != nil:
			t.Fatal(err)
		case n == 0:
			return text, true
		default:
			text += string(buffer[:n])
		}
	}
}

// A rank that finds its pipe unread when it joins has the others hear that, and they let go of theirs.
func TestNewToUnreadPipe(t *testing.T) {
	reader := statsPipe(t)
	members := localExchange(2)
	begun := make(chan struct{}, 1)
	joined := make(chan error, 1)
	go func() {
		exchange := members(0)
		var once sync.Once
		_, err := world.New(t.Context(), 0, 2, func(ctx context.Context, mine string) ([]string, error) {
			once.Do(func() { begun <- struct{}{} })
			return exchange(ctx, mine)
		}, world.WithDevice("tcp"))
		joined <- err
	}()
	await.Receive(t, "rank 0 to have read its environment", begun)
	unread := filepath.Join(t.TempDir(), "unread")
	require.NoError(t, syscall.Mkfifo(unread, 0o600))
	t.Setenv("RMA_STATS", unread)
	_, err := world.New(t.Context(), 1, 2, members(1), world.WithDevice("tcp"))
	require.ErrorIs(t, err, world.ErrEnvironment)
	require.ErrorContains(t, err, unread+": is a named pipe that no process reads")
	err = await.Receive(t, "rank 0", joined)
	require.ErrorContains(t, err, "rank 1 has failed: it cannot join")
	require.ErrorContains(t, err, "is a named pipe that no process reads")
	_, ended := readPipe(t, reader)
	require.True(t, ended)
}

// A named pipe that no process reads is an error before anything runs, and nothing waits for a reader.
func TestStatsToUnreadPipe(t *testing.T) {
	for form, options := range pipeForms {
		t.Run(form, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(name, 0o600))
			t.Setenv("RMA_STATS", name)
			ran := false
			err := world.Run(t.Context(), 2, func(context.Context, *world.World) error {
				ran = true
				return nil
			}, options...)
			require.ErrorIs(t, err, world.ErrEnvironment)
			require.ErrorContains(t, err, "RMA_STATS: open "+name+": is a named pipe that no process reads")
			require.False(t, ran)
		})
	}
}

// No named pipe is a trace.
func TestTraceToUnreadPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(name, 0o600))
	t.Setenv("RMA_TRACE", name)
	err := world.Run(t.Context(), 2, func(context.Context, *world.World) error { return nil }, world.WithDevice("tcp"))
	require.ErrorIs(t, err, world.ErrEnvironment)
	require.ErrorContains(t, err, "RMA_TRACE (or WithTrace): timeline: "+name+": is a named pipe")
}

// A table that a full disk does not take is an error that names the call and the variable.
func TestStatsToFullDisk(t *testing.T) {
	t.Setenv("RMA_STATS", "/dev/full")
	err := world.Run(t.Context(), 1, func(context.Context, *world.World) error { return nil })
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.EqualError(t, err, "world: rank 0: Close: RMA_STATS: write /dev/full: no space left on device")
}
