package job

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
)

// What Dial makes of a server that ends it, at each of the stages that docs/guide/security.md has: it calls again, or returns what
// the server has said.
func TestDialAtEachStage(t *testing.T) {
	s, key, err := sessionSettings([]Option{WithoutKey()}, true)
	require.NoError(t, err)
	limit := errors.New("a limit")
	ends := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	proven := func(conn net.Conn) error { return proof.Accept(conn, key, sessionPurpose) }
	exchanged := func(conn net.Conn, then func(s *Session)) error {
		err := proven(conn)
		if err != nil {
			return err
		}
		session, settings := newSession(conn, s)
		if _, err = join(context.Background(), 0, 2, overLine(conn, 0), settings); err == nil {
			then(session)
		}
		return err
	}
	for _, c := range []struct {
		stage   string
		end     func(conn net.Conn) error
		again   bool
		evicted bool
		says    string
	}{
		{"proof", func(net.Conn) error { return nil }, true, false, ""},
		{"place", func(conn net.Conn) error {
			err := proven(conn)
			(&Listener{parting: make(chan struct{}, 1)}).turnAway(conn)
			return err
		}, true, false, ""},
		{"exchange", func(conn net.Conn) error {
			err := proven(conn)
			sayWhy(ends(errJoinTime), conn)
			return err
		}, false, true, errJoinTime.Error()},
		{"exchange, others come", func(conn net.Conn) error {
			err := proven(conn)
			sayWhy(ends(errFull), conn)
			return err
		}, true, false, ""},
		{"start, others come", func(conn net.Conn) error {
			return exchanged(conn, func(s *Session) {
				sayWhy(ends(errFull), conn)
				_ = s.World().depart()
			})
		}, true, false, ""},
		{"no place for the session", func(conn net.Conn) error {
			return exchanged(conn, func(s *Session) {
				s.start()
				s.Evict(limit)
				_ = s.World().Close()
			})
		}, false, true, limit.Error()},
		{"no place for the session, nor time to say so", func(conn net.Conn) error {
			return exchanged(conn, func(s *Session) {
				s.start()
				s.TurnAway(limit)
				_ = s.World().Close()
			})
		}, true, false, ""},
	} {
		t.Run(c.stage, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			var calls int
			var serving sync.WaitGroup
			serving.Go(func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if calls++; calls == 1 {
						err = c.end(conn)
					} else if err = proven(conn); err == nil {
						err = say(conn, sentence(parting, "the second call"))
					}
					if err != nil {
						t.Errorf("call %d: %v", calls, err)
					}
					_ = conn.Close()
				}
			})
			_, err = Dial(t.Context(), listener.Addr().String(), WithoutKey())
			require.NoError(t, listener.Close())
			serving.Wait()
			if c.again {
				require.Equal(t, 2, calls, "%v", err)
				require.ErrorIs(t, err, ErrEvicted)
				require.ErrorContains(t, err, "the second call")
				return
			}
			require.Equal(t, 1, calls)
			require.Equal(t, c.evicted, errors.Is(err, ErrEvicted), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}
