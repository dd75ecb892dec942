package tcp

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/internal/shortage"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// A side that has no descriptor for a connection does not take its peer for gone, and
// the peer notices nothing of it.
func TestShortOfDescriptors(t *testing.T) {
	key := proof.NewKey()
	near, far := openWith(t, Options{Key: key, HandshakeLimit: 20 * minLimit}), openWith(t, Options{Key: key})
	end := shortage.Begin(t, 0)
	err := failure(t, connect(t, near, far.Address()))
	require.ErrorIs(t, err, verbs.ErrShortage)
	require.ErrorIs(t, err, syscall.EMFILE)
	require.NotErrorIs(t, err, verbs.ErrPeerGone)
	end()
	near.expectAnswersWithin(patience)
	require.Zero(t, far.PollConnections(make([]verbs.ConnectionRequest, 1)))
	join(t, near, far)
}

// One that has some again in time makes the connection.
func TestShortForAWhile(t *testing.T) {
	key := proof.NewKey()
	near, far := openWith(t, Options{Key: key}), openWith(t, Options{Key: key})
	end := shortage.Begin(t, 0)
	p := connect(t, near, far.Address())
	await.Parked(t, "tcp.call", 1) // It has been refused a descriptor.
	end()
	accept(t, p, far)
}

// A side that was called, and has no descriptor to take the connection over by when the hello has come, takes it when it has one. The
// end of the connection, or of the time for it, ends that.
func TestShortAfterTheHello(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	caller, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, caller.Close()) }()
	called, err := listener.Accept()
	require.NoError(t, err)
	taken := make(chan error, 1)
	var m connectionManager // without a spare
	take := func(until time.Time) {
		s, err := m.takeAccepted(called, until)
		if err == nil {
			s.close()
		}
		taken <- err
	}
	forever := time.Now().Add(time.Hour)
	end := shortage.Begin(t, 0)
	go take(forever)
	await.Parked(t, "tcp.(*connectionManager).takeAccepted", 1)
	end()
	require.NoError(t, await.Receive(t, "the connection", taken))

	end = shortage.Begin(t, 0)
	take(time.Time{})
	require.ErrorIs(t, <-taken, syscall.EMFILE)
	go take(forever)
	await.Parked(t, "tcp.(*connectionManager).takeAccepted", 1)
	require.NoError(t, called.Close())
	require.ErrorIs(t, await.Receive(t, "the end of the connection", taken), net.ErrClosed)
	end()
}

// A connection manager takes connections by its spare descriptor while the process has no other. Each is closed for
// that, and leaves a spare for the next.
func TestTakenBySpare(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	callers, called := make([]net.Conn, 3), make([]net.Conn, 3)
	for i := range callers {
		callers[i], err = net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		called[i], err = listener.Accept()
		require.NoError(t, err)
	}
	var m connectionManager
	require.NoError(t, m.spare.refill())
	before := shortage.OpenDescriptors(t)
	end := shortage.Begin(t, 0)
	var sockets []*socket
	// One after the other: a descriptor that take frees for a moment could go to another.
	for _, conn := range called {
		one, err := m.takeAccepted(conn, time.Now().Add(time.Hour))
		require.NoError(t, err)
		sockets = append(sockets, one)
	}
	end()
	seen := make(map[byte]bool)
	for i := range callers {
		_, err := callers[i].Write([]byte{byte(i)})
		require.NoError(t, err)
	}
	for _, s := range sockets {
		text := make([]byte, 1)
		await.True(t, "a byte of the caller", func() bool {
			n, err := s.read(text)
			require.NoError(t, err)
			return n == 1
		})
		seen[text[0]] = true
		flags, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFD, 0)
		require.NoError(t, err)
		require.NotZero(t, flags&unix.FD_CLOEXEC)
		s.close()
	}
	require.Len(t, seen, len(called))
	for i, conn := range called {
		require.ErrorIs(t, conn.Close(), net.ErrClosed)
		require.NoError(t, callers[i].Close())
	}
	require.NoError(t, m.spare.refill())
	// Earlier tests may have left descriptors that are closed meanwhile.
	require.LessOrEqual(t, shortage.OpenDescriptors(t), before-2*len(called))
	m.spare.close()
	m.spare.close()
	require.LessOrEqual(t, shortage.OpenDescriptors(t), before-2*len(called)-1)
	require.Nil(t, m.spare.take(nil), "what is closed is not taken")
}

// A device that has lost its spare, and has no descriptor for another, makes one of that of the next caller, who calls again.
func TestSpareOfACaller(t *testing.T) {
	key := proof.NewKey()
	near, far := openWith(t, Options{Key: key}), openWith(t, Options{Key: key})
	spare := &far.spare
	spare.close()
	// One for the call, and one for what accepts it.
	end := shortage.Begin(t, 2)
	p := connect(t, near, far.Address())
	await.True(t, "the spare", func() bool {
		spare.mu.Lock()
		defer spare.mu.Unlock()
		return spare.open
	})
	end()
	accept(t, p, far)
}

// A lateContext has no deadline before expire.
type lateContext struct {
	context.Context
	done  chan struct{}
	timed atomic.Pointer[context.Context]
}

func (c *lateContext) expire(limit time.Duration) {
	timed, cancel := context.WithTimeout(c.Context, limit)
	c.timed.Store(&timed)
	go func() {
		defer cancel()
		<-timed.Done()
		close(c.done)
	}()
}

func (c *lateContext) Done() <-chan struct{} { return c.done }

func (c *lateContext) Deadline() (time.Time, bool) {
	if timed := c.timed.Load(); timed != nil {
		return (*timed).Deadline()
	}
	return time.Time{}, false
}

func (c *lateContext) Err() error {
	if timed := c.timed.Load(); timed != nil {
		return (*timed).Err()
	}
	return nil
}

// That the time is over is not said of the peer, at whatever moment after a refusal it ends.
func TestShortUntilTheEnd(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	shortage.Begin(t, 0)
	random := testsize.Random(t, 1)
	for range testsize.N(10) {
		ctx := &lateContext{Context: t.Context(), done: make(chan struct{})}
		ended := make(chan error, 1)
		go func() {
			_, err := call(ctx, listener.Addr().String())
			ended <- err
		}()
		await.Parked(t, "tcp.call", 1)                                     // It has been refused a descriptor.
		ctx.expire(time.Duration(random.Int64N(int64(2 * shortestPause)))) // expires
		require.ErrorIs(t, await.Receive(t, "the call to end", ended), syscall.EMFILE)
	}
}

// A device that cannot be opened for want of descriptors names the limit.
func TestOpenNamesTheLimit(t *testing.T) {
	for left := range 3 {
		end := shortage.Begin(t, left)
		_, err := Open(Options{})
		end()
		require.ErrorIs(t, err, syscall.EMFILE)
		require.ErrorContains(t, err, "RLIMIT_NOFILE (ulimit -n) is ", "with %d descriptors", left)
	}
}
