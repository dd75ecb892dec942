package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
)

// A reader that takes nothing holds up the end of a rank for the time of WithStartTimeout, and not for longer than the context of Close.
func TestTableToReaderThatStops(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		ctx      context.Context
		patience time.Duration
		says     string
	}{
		{t.Context(), time.Millisecond, "its reader has not taken the table within 1ms"}, // expires
		{ended, time.Hour, context.Canceled.Error()},
	} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		w := quiet(t)[0]
		w.settings.patience = c.patience
		require.ErrorContains(t, w.writeStats(c.ctx, writer, make([]byte, 1<<20)), c.says)
		require.NoError(t, reader.Close())
	}
}

// A table for which a pipe has room is written, even if the context of Close has ended before.
func TestTableAfterEndOfContext(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	w := quiet(t)[0]
	w.settings.patience = time.Hour
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	// Another write has the end of the context come before this one.
	raw, err := writer.SyscallConn()
	require.NoError(t, err)
	begun, goOn, done := make(chan struct{}, 1), make(chan struct{}), make(chan error, 2)
	go func() {
		done <- raw.Write(func(uintptr) bool {
			begun <- struct{}{}
			<-goOn
			return true
		})
	}()
	await.Receive(t, "the other write to have begun", begun)
	go func() { done <- w.writeStats(ended, writer, []byte("table")) }()
	await.Parked(t, "job.(*World).writeStats", 1)
	close(goOn)
	for range 2 {
		require.NoError(t, await.Receive(t, "a write", done))
	}
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "table", string(text))
	require.NoError(t, reader.Close())
}

// Where Close has no more time, a reader that takes nothing does not hold it up.
func TestCloseBeforeTableIsTaken(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(name, 0o600))
	t.Setenv("RMA_STATS", name)
	pipe, err := unix.Open(name, unix.O_RDWR|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer unix.Close(pipe)
	for err == nil {
		_, err = unix.Write(pipe, make([]byte, 1<<10))
	}
	require.ErrorIs(t, err, unix.EAGAIN)
	require.NoError(t, Run(t.Context(), 1, func(ctx context.Context, w *World) error {
		ended, end := context.WithCancel(ctx)
		end()
		if err := w.CloseContext(ended); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "RMA_STATS: write "+name) {
			return fmt.Errorf("Close ends with %w", err)
		}
		return nil
	}, WithStartTimeout(await.Limit)))
}

// A window that is closed while its World is may tell of itself while the table is written.
func TestAccountWhileWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stats")
	w := quiet(t)[0]
	w.settings.statsTo = file
	var telling sync.WaitGroup
	telling.Go(func() {
		for range 100 {
			w.Account(Account{What: "told", Count: 1})
		}
	})
	require.NoError(t, w.writeAccounts(t.Context()))
	telling.Wait()
	require.NoError(t, w.writeAccounts(t.Context()))
	w.settings.statsTo = ""
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	_, last, _ := strings.Cut(string(text[1:]), "rank 0 of 2")
	require.Equal(t, 100, strings.Count(last, "told"), "%s", last)
}
