package tcp

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A flood of strangers is two lines in the log, one of which says how many they were.
func TestFloodOfStrangers(t *testing.T) {
	var said logs
	opened, err := Open(Options{Logger: said.logger()})
	require.NoError(t, err)
	far := opened.(*device)
	hostPort, _, _ := strings.Cut(far.Address(), "/")
	const flood = 50
	for i := range flood {
		conn, err := net.Dial("tcp", hostPort)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "%042d", i)
		require.NoError(t, err)
		_, _ = conn.Read(make([]byte, 1))
		require.NoError(t, conn.Close())
	}
	require.NoError(t, far.Close())
	require.True(t, said.has("tcp: connection rejected"))
	require.True(t, said.has(fmt.Sprintf("times=%d", flood-1)), said.text.String())
	require.Equal(t, 2, strings.Count(said.text.String(), "\n"), said.text.String())
}

// A logger whose disk is full fails, or blocks. Neither holds up anything.
func TestLoggerOnAFullDisk(t *testing.T) {
	for _, name := range []string{"fails", "blocks"} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			release := make(chan struct{})
			full := disk{func() error {
				calls.Add(1)
				if name == "blocks" {
					<-release
				}
				return syscall.ENOSPC
			}}
			opened, err := Open(Options{Logger: slog.New(full)})
			require.NoError(t, err)
			far := opened.(*device)
			hostPort, _, _ := strings.Cut(far.Address(), "/")
			for _, says := range []string{"GET / HTTP/1.1\r\n" + strings.Repeat("x", 60), "RMAproof\x00\x03" + strings.Repeat("n", 64), "short"} {
				conn, err := net.Dial("tcp", hostPort)
				require.NoError(t, err)
				// The device may end it before all is said.
				_, _ = conn.Write([]byte(says))
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = conn.Read(make([]byte, 1))
				require.NoError(t, conn.Close())
			}
			pollUntil(t, "the logger", func() bool { return calls.Load() > 0 }, far)
			join(t, openWith(t, Options{}), far)
			require.NoError(t, far.Close(), "while the logger "+name)
			close(release)
			if name == "blocks" {
				require.EqualValues(t, 1, calls.Load(), "calls of a logger that has not returned")
			}
		})
	}
}

// disk is a handler that writes where it does not go.
type disk struct{ write func() error }

func (disk) Enabled(context.Context, slog.Level) bool    { return true }
func (d disk) Handle(context.Context, slog.Record) error { return d.write() }
func (d disk) WithAttrs([]slog.Attr) slog.Handler        { return d }
func (d disk) WithGroup(string) slog.Handler             { return d }
