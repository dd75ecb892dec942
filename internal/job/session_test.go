package job_test

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/world"
)

// listening is a Listener on the loopback address, and how sessions of it end.
func listening(t *testing.T, options ...world.Option) (l *world.Listener, ends chan error) {
	t.Helper()
	l, err := world.Listen(t.Context(), "127.0.0.1:0", options...)
	require.NoError(t, err)
	ends = make(chan error, 8)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			s, err := job.ListenerOf(l).Accept(context.Background())
			if err != nil {
				return
			}
			if err := s.Begin(); err != nil {
				ends <- err
			}
			<-s.Left()
			failed := s.World().Failure(1)
			ends <- errors.Join(failed, s.World().Close())
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return l, ends
}

func TestSession(t *testing.T) {
	key, config := proof.NewKey(), tlstest.Config(t, "127.0.0.1")
	for name, options := range map[string][]world.Option{
		"plain": {world.WithoutKey()},
		"key":   {world.WithKey(key)},
		"TLS":   {world.WithKey(key), world.WithTLS(config)},
		"tcp":   {world.WithoutKey(), world.WithDevice("tcp")},
	} {
		t.Run(name, func(t *testing.T) {
			l, ends := listening(t, options...)
			for range 3 {
				w, err := world.Dial(t.Context(), l.Addr().String(), options...)
				require.NoError(t, err)
				require.Equal(t, []int{1, 2}, []int{w.Rank(), w.Size()})
				require.True(t, job.Of(w).Dialed())
				require.False(t, w.Mapped(0))
				require.ErrorIs(t, w.Barrier(t.Context()), world.ErrNoCollectives)
				_, err = w.Split(t.Context(), 0, 0)
				require.ErrorIs(t, err, world.ErrNoCollectives)
				_, err = w.Shrink(t.Context())
				require.ErrorIs(t, err, world.ErrNoCollectives)
				require.NoError(t, w.Close())
				require.NoError(t, <-ends)
			}
		})
	}
}

// A session that one side ends is a failure of that on the other.
func TestSessionEnded(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	accepted := make(chan *job.Session)
	go func() {
		s, err := job.ListenerOf(l).Accept(t.Context())
		if err == nil {
			err = s.Begin()
		}
		if err != nil {
			s = nil
		}
		accepted <- s
	}()
	w, err := world.Dial(t.Context(), l.Addr().String(), world.WithoutKey())
	require.NoError(t, err)
	s := <-accepted
	require.NotNil(t, s)
	told := make(chan *world.PeerError, 1)
	w.OnFailure(func(err *world.PeerError) { told <- err })
	s.End(errors.New("enough"))
	require.Zero(t, (<-told).Rank)
	require.ErrorContains(t, s.World().Failure(1), "enough")
	require.NoError(t, s.World().Close())
	require.NoError(t, w.Close())
	// One that nobody accepts is given up, or ends with the Listener.
	longerAndLonger(t, func(within time.Duration) error { return notBegun(t, l, within) })
	dialed := make(chan error)
	go func() {
		_, err := world.Dial(t.Context(), l.Addr().String(), world.WithoutKey())
		dialed <- err
	}()
	_, err = world.Dial(t.Context(), l.Addr().String(), world.WithStartTimeout(50*time.Millisecond), world.WithoutKey())
	require.Error(t, err)
	require.NoError(t, l.Close())
	require.Error(t, <-dialed)
	_, err = job.ListenerOf(l).Accept(t.Context())
	require.ErrorIs(t, err, world.ErrClosed)
	require.EqualError(t, err, "world: Accept: the Listener is closed")
	_, err = world.Dial(t.Context(), l.Addr().String(), world.WithoutKey())
	require.Error(t, err)
}

// notBegun checks that Dial returns the error of a session that the server has not begun, because no call accepts it. If Dial ends before
// that stage, the error is errTooSoon.
func notBegun(t *testing.T, l *world.Listener, within time.Duration) error {
	_, err := world.Dial(t.Context(), l.Addr().String(), world.WithStartTimeout(within), world.WithoutKey())
	require.Error(t, err)
	if strings.Contains(err.Error(), "has not begun") {
		return nil
	}
	return tooSoon(err)
}

func TestSessionRefused(t *testing.T) {
	busy.Acquire(t)
	key, config := proof.NewKey(), tlstest.Config(t, "127.0.0.1")
	l, _ := listening(t, world.WithKey(key))
	address := l.Addr().String()
	secure, _ := listening(t, world.WithKey(key), world.WithTLS(config))
	stranger := tlstest.Config(t, "127.0.0.1")
	for name, c := range map[string]struct {
		address string
		options []world.Option
		is      error
		says    string
	}{
		"another key":         {address, []world.Option{world.WithKey(proof.NewKey())}, proof.ErrKey, ""},
		"no key":              {address, nil, world.ErrArgument, "WithoutKey"},
		"without a key":       {address, []world.Option{world.WithoutKey()}, proof.ErrKey, ""},
		"both":                {address, []world.Option{world.WithoutKey(), world.WithKey(key)}, world.ErrArgument, "WithoutKey"},
		"no address":          {"nowhere", nil, world.ErrArgument, "host:port"},
		"a short key":         {address, []world.Option{world.WithKey([]byte("short"))}, world.ErrArgument, "5 bytes"},
		"another device":      {address, []world.Option{world.WithKey(key), world.WithDevice("tcp")}, world.ErrMismatch, "tcp"},
		"an unknown device":   {address, []world.Option{world.WithDevice("smoke")}, world.ErrEnvironment, "smoke"},
		"no TLS":              {secure.Addr().String(), []world.Option{world.WithKey(key), world.WithStartTimeout(200 * time.Millisecond)}, nil, ""},
		"another certificate": {secure.Addr().String(), []world.Option{world.WithKey(key), world.WithTLS(stranger)}, nil, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := world.Dial(t.Context(), c.address, c.options...)
			require.Error(t, err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.ErrorContains(t, err, c.says)
		})
	}
	t.Run("TLS of one side", func(t *testing.T) {
		longerAndLonger(t, func(within time.Duration) error {
			_, err := world.Dial(t.Context(), address, world.WithKey(key), world.WithTLS(config), world.WithStartTimeout(within))
			require.Error(t, err)
			if strings.Contains(err.Error(), "TLS") {
				return nil
			}
			return tooSoon(err)
		})
	})
	_, err := world.Listen(t.Context(), "0.0.0.0:0", world.WithoutKey())
	require.ErrorIs(t, err, world.ErrArgument)
	require.ErrorContains(t, err, "RMA_SERVE_KEY_FILE")
	_, err = world.Listen(t.Context(), "127.0.0.1:0")
	require.ErrorIs(t, err, world.ErrArgument)
	require.ErrorContains(t, err, "WithoutKey")
	_, err = world.Listen(t.Context(), "127.0.0.1:0", world.WithKey(key), world.WithTLS(new(tls.Config)))
	require.ErrorContains(t, err, "certificate")
}

// Sessions take the key of RMA_SERVE_KEY_FILE, if that is set, and not the key of the job. A server or client that takes the key of the
// job logs a warning.
func TestKeyOfTheServer(t *testing.T) {
	ofJob, own := proof.NewKey(), proof.NewKey()
	ownFile := fileOf(t, hex.EncodeToString(own))
	t.Setenv("RMA_KEY_FILE", fileOf(t, hex.EncodeToString(ofJob)))
	for name, c := range map[string]struct {
		file       string
		key, other []byte
		warnings   int
	}{
		"the job's": {"", ofJob, own, 1},
		"its own":   {ownFile, own, ofJob, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RMA_SERVE_KEY_FILE", c.file)
			var told lines
			logger := world.WithLogger(slog.New(slog.NewTextHandler(&told, nil)))
			warnings := func() int { return strings.Count(strings.Join(told.all(), "\n"), "RMA_KEY_FILE, the key of the job") }
			l, ends := listening(t, logger)
			require.Equal(t, c.warnings, warnings())
			_, err := world.Dial(t.Context(), l.Addr().String(), world.WithKey(c.other))
			require.ErrorIs(t, err, proof.ErrKey)
			for _, option := range []world.Option{world.WithKey(c.key), logger} {
				w, err := world.Dial(t.Context(), l.Addr().String(), option)
				require.NoError(t, err)
				require.NoError(t, w.Close())
				require.NoError(t, <-ends)
			}
			require.Equal(t, 2*c.warnings, warnings(), "warnings of the server, and of the client without WithKey")
		})
	}
}

// The proof of a session is for one TLS connection. A process without the key, whose certificate both sides accept, cannot relay the
// proof from one connection to another.
func TestProofRelayedBetweenSessions(t *testing.T) {
	config, key := tlstest.Config(t, "127.0.0.1"), proof.NewKey()
	var relaying sync.WaitGroup
	t.Cleanup(relaying.Wait)
	var told lines
	l, ends := listening(t, world.WithKey(key), world.WithTLS(config), world.WithLogger(slog.New(slog.NewTextHandler(&told, nil))))
	relay, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = relay.Close() })
	relaying.Go(func() {
		called, err := relay.Accept()
		if err != nil {
			return
		}
		defer called.Close()
		calls, err := tls.Dial("tcp", l.Addr().String(), config)
		if err != nil {
			t.Error(err)
			return
		}
		defer calls.Close()
		relaying.Go(func() {
			_, _ = io.Copy(called, calls)
			_ = called.Close()
		})
		_, _ = io.Copy(calls, called)
	})
	w, err := world.Dial(t.Context(), relay.Addr().String(), world.WithKey(key), world.WithTLS(config))
	if err == nil {
		_ = w.Close()
	}
	require.ErrorIs(t, err, proof.ErrKey)
	await.True(t, "the server to refuse the proof, too", func() bool { return strings.Contains(strings.Join(told.all(), "\n"), "relays TLS") })
	require.Empty(t, ends)
	w, err = world.Dial(t.Context(), l.Addr().String(), world.WithKey(key), world.WithTLS(config))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, <-ends)
}

// Who is hung up on is told of that, although what then comes of calling again is another error.
func TestSessionHungUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		conn, err := l.Accept()
		_ = l.Close()
		if err == nil {
			_ = conn.Close()
		}
	}()
	_, err = world.Dial(t.Context(), l.Addr().String(), world.WithKey(proof.NewKey()), world.WithTLS(tlstest.Config(t, "127.0.0.1")))
	require.ErrorContains(t, err, "TLS")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// Who says nothing, or anything else, keeps nobody else out.
func TestSessionOfStrangers(t *testing.T) {
	l, ends := listening(t, world.WithoutKey())
	for _, said := range []string{"", "GET / HTTP/1.1\r\n\r\n", "RMAproof"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = conn.Write([]byte(said))
		require.NoError(t, err)
	}
	w, err := world.Dial(t.Context(), l.Addr().String(), world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.NoError(t, <-ends)
	// One that has the key, and then says what is no text of a rank.
	conn, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, proof.Dial(conn, make([]byte, 32), "rma session 1"))
	_, err = conn.Write([]byte{0xff, 0xff})
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1<<16))
	for err == nil {
		_, err = conn.Read(make([]byte, 1<<16))
	}
	require.True(t, proof.Ended(err), "%v", err)
}
