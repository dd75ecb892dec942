package logqueue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/logqueue"
)

// A gate is a writer that blocks until it is opened. It fails if err is set.
type gate struct {
	opened chan struct{}
	err    error
	calls  int
	text   bytes.Buffer
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) Write(line []byte) (int, error) {
	<-g.opened
	if g.calls++; g.err != nil {
		return 0, g.err
	}
	return g.text.Write(line)
}

func (g *gate) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(g, &slog.HandlerOptions{Level: slog.LevelInfo, AddSource: true}))
}

func (g *gate) lines() []string { return strings.Split(strings.TrimSpace(g.text.String()), "\n") }

// The logger gets all records in order, with the time and place of the original call.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		q := logqueue.New(g.logger())
		log := q.Logger().With("rank", 3).WithGroup("peer")
		began := time.Now()
		for i := range 20 {
			log.Debug("not told")
			log.Info("told", "number", i)
		}
		time.Sleep(time.Hour) // computes
		close(g.opened)
		q.Close()
		require.Len(t, g.lines(), 20)
		for i, line := range g.lines() {
			require.Contains(t, line, "time="+began.Format("2006-01-02T15:04:05.000"))
			require.Contains(t, line, "queue_test.go:")
			require.True(t, strings.HasSuffix(line, fmt.Sprintf("msg=told rank=3 peer.number=%d", i)), line)
		}
	})
}

// While the logger blocks, no caller waits, and dropped records are counted.
func TestLoggerThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		q := logqueue.New(g.logger())
		began := time.Now()
		q.Logger().Info("the first")
		synctest.Wait()
		for i := range logqueue.Most + 7 {
			q.Logger().Info("more", "number", i)
		}
		require.Zero(t, time.Since(began))
		close(g.opened)
		synctest.Wait()
		lines := g.lines()
		require.Len(t, lines, 1+logqueue.Most+1)
		require.Contains(t, lines[logqueue.Most], fmt.Sprintf("msg=more number=%d", logqueue.Most-1))
		require.Contains(t, lines[logqueue.Most+1], `msg="records were dropped, because the logger is too slow" dropped=7`)
		q.Logger().Info("again")
		q.Close()
		require.Contains(t, g.text.String(), "again")
	})
}

// Close waits for a logger that blocks for a limited time. If the logger returns, it gets the number of dropped records,
// and nothing remains of the queue.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		q := logqueue.New(g.logger())
		q.Close()
		q = logqueue.New(g.logger())
		for range 10 {
			q.Logger().Info("told")
		}
		synctest.Wait()
		began := time.Now()
		q.Close()
		require.Equal(t, 250*time.Millisecond, time.Since(began))
		q.Logger().Info("after the end")
		close(g.opened)
		synctest.Wait()
		require.Len(t, g.lines(), 2)
		require.Contains(t, g.lines()[1], "dropped=9")
	})
}

// A slowWriter takes a time for each line.
type slowWriter struct {
	each  time.Duration
	lines []string
}

func (w *slowWriter) Write(line []byte) (int, error) {
	time.Sleep(w.each) // computes, in virtual time: a slow disk
	w.lines = append(w.lines, string(line))
	return len(line), nil
}

// Close waits longer for a logger that is slow, but not for ever: what a program logs before it ends is not lost.
func TestCloseOfASlowLogger(t *testing.T) {
	for _, c := range []struct {
		each, waits time.Duration
		lines       int
	}{
		{190 * time.Millisecond, 1900 * time.Millisecond, 10},
		// The ninth line is being written after two seconds. It is followed by the number of those that are not.
		{249 * time.Millisecond, 2 * time.Second, 10},
		{251 * time.Millisecond, 250 * time.Millisecond, 2},
	} {
		t.Run(c.each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &slowWriter{each: c.each}
				q := logqueue.New(slog.New(slog.NewTextHandler(w, nil)))
				for range 10 {
					q.Logger().Info("told")
				}
				synctest.Wait()
				began := time.Now()
				q.Close()
				require.Equal(t, c.waits, time.Since(began))
				time.Sleep(time.Minute) // computes, in virtual time: the logger ends
				synctest.Wait()
				require.Len(t, w.lines, c.lines)
			})
		})
	}
}

// A logger that fails is called again for later records.
func TestLoggerThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		close(g.opened)
		g.err = errors.New("no space left on device")
		q := logqueue.New(g.logger())
		for range 10 {
			q.Logger().Info("not told")
		}
		q.Close()
		require.Equal(t, 10, g.calls)
	})
}

func TestNoLogger(t *testing.T) {
	q := logqueue.New(nil)
	require.False(t, q.Logger().Enabled(context.Background(), slog.LevelError))
	q.Logger().Error("told to nobody")
	q.Close()
}
