package netcall_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/netcall"
	"github.com/onesided/rma/verbs"
)

// 0.0.0.0 includes no IPv6 addresses.
func TestListen(t *testing.T) {
	for at, want := range map[string]string{"0.0.0.0:0": "0.0.0.0", "127.0.0.1:0": "127.0.0.1", "localhost:0": "127.0.0.1"} {
		listener, err := netcall.Listen(at)
		require.NoError(t, err)
		host, _, err := net.SplitHostPort(listener.Addr().String())
		require.NoError(t, err)
		require.Equal(t, want, host)
		require.NoError(t, listener.Close())
	}
	_, err := netcall.Listen("nowhere")
	require.Error(t, err)
}

// The error for a network that this host cannot reach has neither class. It does not mean that the peer is gone, or
// that this side is short of something. It may pass.
func TestClass(t *testing.T) {
	for _, c := range []struct {
		errno syscall.Errno
		class error
	}{
		{syscall.ENETUNREACH, nil},
		{syscall.ENETDOWN, nil},
		{syscall.EMFILE, verbs.ErrShortage},
		{syscall.EADDRNOTAVAIL, verbs.ErrShortage},
		{syscall.ECONNREFUSED, verbs.ErrPeerGone},
		{syscall.EHOSTUNREACH, verbs.ErrPeerGone},
	} {
		class := netcall.Class(fmt.Errorf("connect: %w", c.errno))
		for _, other := range []error{verbs.ErrShortage, verbs.ErrPeerGone} {
			require.Equal(t, c.class == other, errors.Is(class, other), "%v", c.errno)
		}
		require.Equal(t, c.class != verbs.ErrPeerGone, netcall.MayPass(c.errno), "%v", c.errno)
		if c.class == nil {
			require.EqualError(t, class, "this host has no route to it")
		}
	}
}

func TestWithoutAddress(t *testing.T) {
	_, err := net.Dial("tcp", "127.0.0.1:0")
	require.EqualError(t, netcall.WithoutAddress(fmt.Errorf("wrapped: %w", err)), "connect: connection refused")
	other := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	require.Equal(t, error(other), netcall.WithoutAddress(other))
}
