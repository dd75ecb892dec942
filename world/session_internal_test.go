package world

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs/tcp/proof"
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
	conn, err := s.call(ctx, listener.Addr().String(), "127.0.0.1", key, 50*time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	// Who does not listen is not called again.
	require.NoError(t, listener.Close())
	serving.Wait()
	_, err = s.call(ctx, listener.Addr().String(), "127.0.0.1", key, proofTime)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}
