package job

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

// lateWelcome is a line on which the welcome comes just when the context has ended that waits for it.
type lateWelcome struct {
	net.Conn
	end   func()
	ended chan struct{}
}

func (l *lateWelcome) Read(into []byte) (int, error) {
	l.end()
	<-l.ended
	return copy(into, []byte{welcome}), nil
}

func (l *lateWelcome) SetDeadline(time.Time) error {
	close(l.ended)
	return nil
}

// A session that its context has ended is none, though the welcome has come: its line is of no use.
func TestWelcomeTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, awaitWelcome(ctx, &lateWelcome{end: cancel, ended: make(chan struct{})}), context.Canceled)
}

// An exchange whose context has ended has failed, though the other side's text has come: its line is of no use.
func TestExchangeTooLate(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := overLine(&lateText{lateWelcome{end: cancel, ended: make(chan struct{})}}, 1)(ctx, "mine")
	require.ErrorIs(t, err, context.Canceled)
}

// lateText is a line on which an empty text comes just when the context has ended that waits for it.
type lateText struct{ lateWelcome }

func (l *lateText) Write(text []byte) (int, error) { return len(text), nil }

func (l *lateText) Read(into []byte) (int, error) {
	l.end()
	<-l.ended
	clear(into)
	return len(into), nil
}

// sessionHere is a session whose line stays open until the test ends.
func sessionHere(t *testing.T) (server *Session, client *World) {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", WithoutKey())
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		var err error
		if server, err = l.Accept(context.Background()); err == nil {
			err = server.Begin()
		}
		accepted <- err
	}()
	client, err = Dial(t.Context(), l.Addr().String(), WithoutKey())
	require.NoError(t, errors.Join(err, <-accepted))
	require.Nil(t, client.settings.attempted, "the World keeps what only Dial uses")
	t.Cleanup(func() {
		var closing sync.WaitGroup
		closing.Go(func() { assert.NoError(t, client.Close()) })
		<-server.Left()
		assert.NoError(t, server.World().Close())
		closing.Wait()
		assert.NoError(t, l.Close())
	})
	return server, client
}

// A connection of the client's that fails while its line is well is the failure of the server for the reason that it has.
func TestConnectionFailsAlone(t *testing.T) {
	t.Parallel()
	_, client := sessionHere(t)
	l, err := client.Link(0)
	require.NoError(t, err)
	bad := errors.New("bad message")
	client.Exclude(func() { l.fail(bad) })
	require.ErrorIs(t, client.Failure(0), bad)
	require.NotContains(t, client.Failure(0).Error(), "timeout")
}

// lineHere is a line within this process.
func lineHere(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	near, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	far, err = l.Accept()
	require.NoError(t, errors.Join(err, l.Close()))
	return near, far
}

// What progress finds of the other side while a session begins, it finds in a World that is that of the session.
func TestFailureWhileJoining(t *testing.T) {
	t.Parallel()
	near, far := lineHere(t)
	s, _, err := sessionSettings([]Option{WithoutKey()}, false)
	require.NoError(t, err)
	worlds, sessions, errs := make([]*World, 2), make([]*Session, 2), make([]error, 2)
	var joining sync.WaitGroup
	for rank, conn := range []net.Conn{far, near} {
		joining.Go(func() {
			var its Settings
			sessions[rank], its = newSession(conn, s)
			worlds[rank], errs[rank] = join(t.Context(), rank, 2, overLine(conn, rank), its)
		})
	}
	joining.Wait()
	require.NoError(t, errors.Join(errs...))
	bad := errors.New("bad message")
	var driver sync.WaitGroup
	driver.Go(func() { worlds[1].failed(0, bad) })
	for _, session := range sessions {
		session.start()
	}
	driver.Wait()
	require.True(t, worlds[1].Dialed())
	require.ErrorIs(t, worlds[1].Failure(0), bad)
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// A session may be ended without a reason, which is said to both sides then.
func TestSessionEndedWithoutReason(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(s *Session)
		is   error
		says string
	}{
		"End":          {func(s *Session) { s.End(nil) }, io.EOF, ""},
		"in order":     {func(s *Session) { s.EndInOrder(nil) }, ErrLeft, ""},
		"Evict":        {func(s *Session) { s.Evict(nil) }, ErrEvicted, errNoReason.Error()},
		"empty reason": {func(s *Session) { s.Evict(errors.New("")) }, ErrEvicted, errNoReason.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := sessionHere(t)
			c.end(server)
			if name != "empty reason" {
				require.ErrorIs(t, server.World().Failure(1), errNoReason)
				require.ErrorContains(t, server.World().Failure(1), errNoReason.Error())
			}
			await.True(t, "the client to hear of the end", func() bool { return client.FailureCount() > 0 })
			require.ErrorIs(t, client.Failure(0), c.is)
			require.ErrorContains(t, client.Failure(0), c.says)
		})
	}
}

// A lateContext is one whose end comes later than its deadline, as where timers are late.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

// A Dial that its context cuts short says so, also where the network has heard of the deadline first.
func TestDialCutShort(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, cause) // expires
	defer cancel()
	err := cutShort(lateContext{ctx}, os.ErrDeadlineExceeded)
	for _, is := range []error{cause, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		require.ErrorIs(t, err, is)
	}
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	require.Equal(t, os.ErrDeadlineExceeded, cutShort(ctx, os.ErrDeadlineExceeded))
	cancel()
	_, err = Dial(ctx, "127.0.0.1:1", WithoutKey())
	require.ErrorIs(t, err, context.Canceled)
}

// A Dial that waits as long as WithStall says tells the logger so once, with how its last attempt has ended.
func TestDialIsAttended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			stall, takes time.Duration
			attempts     []error
			told         string
		}{
			{time.Minute, 59 * time.Second, []error{errFull}, ""},
			{time.Minute, time.Hour, nil, `level=WARN msg="a call waits long" call=world.Dial for=1m0s "waits for"="the server at host:1"` + "\n"},
			{time.Minute, time.Hour, []error{io.EOF, errFull}, `level=WARN msg="a call waits long" call=world.Dial for=1m0s "waits for"="the server at host:1" why="` + errFull.Error() + "\"\n"},
			{0, time.Hour, []error{errFull}, ""},
		} {
			var log bytes.Buffer
			s := Settings{stall: c.stall, logger: slog.New(slog.NewTextHandler(&log, nil))}
			stop := s.attendDial("host:1")
			for _, err := range c.attempts {
				s.attempted(err)
			}
			time.Sleep(c.takes) // computes, in virtual time
			stop()
			_, told, _ := strings.Cut(log.String(), " ")
			require.Equal(t, c.told, told)
		}
	})
}

// A Dial that waits for a place at a server, or for a program that has not taken its session yet, tells its logger for which server.
func TestDialTellsItsLogger(t *testing.T) {
	for _, full := range []bool{false, true} {
		l, err := Listen(t.Context(), "127.0.0.1:0", WithoutKey(), WithLogger(nil))
		require.NoError(t, err)
		report := `call=world.Dial for=1ms "waits for"="the server at ` + l.Addr().String() + `"`
		if full {
			for range mostJoining {
				l.joining.places <- struct{}{}
			}
			for range mostQueued {
				l.joining.queue <- struct{}{}
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		told, dialed := make(chan string, 8), make(chan error, 1)
		go func() {
			_, err := Dial(ctx, l.Addr().String(), WithoutKey(), WithStall(time.Millisecond), WithLogger(slog.New(slog.NewTextHandler(writer(func(line []byte) {
				if strings.Contains(string(line), report) {
					told <- string(line)
				}
			}), nil))))
			dialed <- err
		}()
		require.Contains(t, await.Receive(t, "the report", told), `level=WARN msg="a call waits long"`)
		cancel()
		require.ErrorIs(t, await.Receive(t, "the end of Dial", dialed), context.Canceled)
		require.Empty(t, told)
		require.NoError(t, l.Close())
	}
}

// A server that does not answer at all is called once: nobody waits for one that does not listen.
func TestUnreachableIsNotCalledAgain(t *testing.T) {
	require.True(t, hadNoTime(os.ErrDeadlineExceeded))
	require.False(t, hadNoTime(&unreachable{os.ErrDeadlineExceeded}))
}

// A server that leaves a call alone, as one does that many call, is called again.
func TestCallAgainAfterSilence(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	s, key, err := sessionSettings([]Option{WithoutKey()}, false)
	require.NoError(t, err)
	var serving sync.WaitGroup
	// Until the listener is closed: a client that is slow may have left a call whose proof this side has accepted.
	serving.Go(func() {
		for call := 0; ; call++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if call > 0 {
				_ = proof.Accept(conn, key, sessionPurpose)
			}
			defer conn.Close()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	var ends []error
	s.attempted = func(why error) { ends = append(ends, why) }
	conn, err := s.call(ctx, listener.Addr().String(), "127.0.0.1", key, 50*time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NotEmpty(t, ends)
	require.True(t, hadNoTime(ends[0]), "%v", ends[0])
	// Who does not listen is not called again.
	require.NoError(t, listener.Close())
	serving.Wait()
	_, err = s.call(ctx, listener.Addr().String(), "127.0.0.1", key, proofTime)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
