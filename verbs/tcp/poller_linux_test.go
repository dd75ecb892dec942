package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nearEnd is a socket that has nothing to read and room for output.
func nearEnd(t *testing.T) int {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	})
	return fds[0]
}

// Sockets become epoll's as they are then, though an attempt before had got half-way.
func TestMovedAgain(t *testing.T) {
	var p poller
	require.NoError(t, p.open(true))
	defer p.close()
	fds := make([]int, fewSockets)
	for slot := range fds {
		fds[slot] = nearEnd(t)
		require.NoError(t, p.add(fds[slot], slot))
	}
	// One at which the first attempt fails.
	const gone = -1
	p.remove(fds[fewSockets-1])
	p.few.add(gone, fewSockets-1)
	require.ErrorIs(t, p.add(nearEnd(t), fewSockets), unix.EBADF)
	require.False(t, p.many.Load())
	p.remove(gone)

	p.watch(fds[0], 0, true)
	p.watch(fds[1], 1, true)
	p.watch(fds[1], 1, false)
	require.NoError(t, p.add(fds[fewSockets-1], fewSockets-1))
	require.NoError(t, p.add(nearEnd(t), fewSockets))
	require.True(t, p.many.Load())
	require.Equal(t, []int32{0}, p.ready(nil), "slots with room that is waited for")
	p.watch(fds[0], 0, false)
	require.Empty(t, p.ready(nil))
}
