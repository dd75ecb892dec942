package job

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
)

// said is a line on which the other side has said something.
type said struct {
	net.Conn
	*bytes.Reader
}

func (s said) Read(into []byte) (int, error)  { return s.Reader.Read(into) }
func (s said) Write(from []byte) (int, error) { return len(from), nil }

// A server that ends a session says why, at each place where the client listens.
func TestPartingWords(t *testing.T) {
	for _, c := range []struct {
		words []byte
		is    error
		says  string
	}{
		{sentence(parting, ""), ErrLeft, ""},
		{sentence(parting, "the reason\x1b[2J"), ErrEvicted, `the server has ended the session: "the reason\x1b[2J"`},
		{sentence(parting, strings.Repeat("x", longestReason+1)), ErrEvicted, strings.Repeat("x", longestReason)},
		{sentence(serverFull, ""), errFull, ""},
		{[]byte{parting, 0xff, 0xff}, errContact, "65535 bytes, allowed are 512"},
		{[]byte{parting, 0, 9, 'x'}, io.ErrUnexpectedEOF, ""},
	} {
		conn := said{Reader: bytes.NewReader(c.words)}
		_, err := hearWord(conn)
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
		conn = said{Reader: bytes.NewReader(c.words)}
		_, err = overLine(conn, 1)(t.Context(), "mine")
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
	}
}

// A place is the oldest client's for its share of time, and no longer when others come.
func TestJoining(t *testing.T) {
	t.Parallel()
	j := newJoining(2, 1, time.Hour)
	first, leave, err := j.enter(t.Context())
	require.NoError(t, err)
	second, leaveSecond, err := j.enter(t.Context())
	require.NoError(t, err)
	entered := make(chan func())
	go func() {
		_, leave, err := j.enter(t.Context())
		if err != nil {
			t.Error(err)
		}
		entered <- leave
	}()
	<-first.Done()
	require.NoError(t, second.Err())
	leave()
	(<-entered)()
	leaveSecond()
	require.Empty(t, j.places)
	require.Empty(t, j.queue)
	require.Empty(t, j.oldest)
}

// No client loses its place while others are free, however long it has had it.
func TestJoiningPlaceFree(t *testing.T) {
	j := newJoining(2, 1, time.Hour)
	first, leave, err := j.enter(t.Context())
	require.NoError(t, err)
	j.oldest[0].since = time.Now().Add(-time.Hour)
	for range 64 {
		_, leave, err := j.enter(t.Context())
		require.NoError(t, err)
		leave()
		require.NoError(t, first.Err())
	}
	leave()
}

// Those that wait for a place are bounded in their number and in their time.
func TestJoiningQueue(t *testing.T) {
	j := newJoining(1, 1, time.Hour)
	_, leave, err := j.enter(t.Context())
	require.NoError(t, err)
	entered := make(chan func())
	go func() {
		_, leave, err := j.enter(t.Context())
		if err != nil {
			t.Error(err)
		}
		entered <- leave
	}()
	await.True(t, "a client to wait", func() bool { return len(j.queue) == 1 })
	_, _, err = j.enter(t.Context())
	require.ErrorIs(t, err, errFull)
	leave()
	(<-entered)()
	require.Empty(t, j.places)
	require.Empty(t, j.queue)

	j = newJoining(1, 1, 0)
	j.places <- struct{}{}
	_, _, err = j.enter(t.Context())
	require.ErrorIs(t, err, errFull)
	require.Empty(t, j.queue)
}

// A client for which there is no place is told so, and its Dial calls again until there is one.
func TestClientTurnedAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	told := make(chan string, 1)
	l, err := Listen(ctx, "127.0.0.1:0", WithoutKey(), WithLogger(slog.New(slog.NewTextHandler(writer(func(line []byte) {
		select {
		case told <- string(line):
		default:
		}
	}), nil))))
	require.NoError(t, err)
	for range mostJoining {
		l.joining.places <- struct{}{}
	}
	for range mostQueued {
		l.joining.queue <- struct{}{}
	}
	s, key, err := sessionSettings([]Option{WithoutKey()}, false)
	require.NoError(t, err)
	_, err = s.dial(ctx, l.Addr().String(), "127.0.0.1", key)
	require.ErrorIs(t, err, errFull)
	line := <-told
	require.Contains(t, line, "a client was turned away")
	require.Contains(t, line, errFull.Error())
	await.True(t, "the client to be gone", func() bool { return len(l.parting) == 0 })

	served := make(chan error, 1)
	go func() {
		session, err := l.Accept(ctx)
		if err == nil {
			err = session.Begin()
		}
		if err == nil {
			<-session.Left()
			err = session.World().Close()
		}
		served <- err
	}()
	<-l.joining.queue
	<-l.joining.places
	w, err := Dial(ctx, l.Addr().String(), WithoutKey())
	require.NoError(t, err)
	require.NoError(t, errors.Join(w.Close(), <-served, l.Close()))
}

// A writer is called with each line of a log.
type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}
