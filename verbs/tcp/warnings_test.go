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
	"time"

	"github.com/stretchr/testify/require"
)

// What happens again and again is told once a minute, with how often it was.
func TestWarnings(t *testing.T) {
	var w warnings
	began := time.Now()
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	told := make(map[int]int)
	for second := range 200 {
		for range 3 {
			if tell, untold := w.due(subject{"key", "10.0.0.1"}, at(second)); tell {
				told[second] = untold
			}
		}
	}
	require.Equal(t, map[int]int{0: 0, 60: 179, 120: 179, 180: 179}, told)
	for _, about := range []subject{{"key", "10.0.0.2"}, {"version", "10.0.0.1"}} {
		tell, untold := w.due(about, at(200))
		require.True(t, tell, "%v has not happened before", about)
		require.Zero(t, untold)
	}
	require.Equal(t, 59, w.rest())
	require.Zero(t, w.rest())
}

// Strangers of any number of hosts cannot have more told than there is room for, and
// none of it is lost in the count.
func TestWarningsOfManyHosts(t *testing.T) {
	var w warnings
	began := time.Now()
	told, untold := 0, 0
	const minutes, hosts = 5, 1000
	for minute := range minutes {
		for i := range hosts {
			tell, more := w.due(subject{"key", fmt.Sprint(minute, " ", i)}, began.Add(time.Duration(minute)*warningPause))
			if untold += more; tell {
				told++
			}
			require.LessOrEqual(t, len(w.kept), maxSubjects+1)
		}
	}
	require.LessOrEqual(t, told, minutes*(maxSubjects+1))
	require.GreaterOrEqual(t, told, minutes*maxSubjects)
	require.Equal(t, minutes*hosts, told+untold+w.rest())
}

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
	require.True(t, said.has("tcp: connection refused"))
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
			for _, says := range []string{"GET / HTTP/1.1\r\n" + strings.Repeat("x", 60), "RMAproof\x00\x02" + strings.Repeat("n", 64), "short"} {
				conn, err := net.Dial("tcp", hostPort)
				require.NoError(t, err)
				// The device may end it before all is said.
				_, _ = conn.Write([]byte(says))
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = conn.Read(make([]byte, 1))
				require.NoError(t, conn.Close())
			}
			await(t, "the logger", func() bool { return calls.Load() > 0 }, far)
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
