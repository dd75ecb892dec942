package tcp

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// One call takes what follows what was taken before, and no more than it is given leave
// to: a collection waits for it.
func TestOneCall(t *testing.T) {
	for _, c := range []struct {
		slices     []int
		skip, most int
		want       []uint64
	}{
		{nil, 0, 10, nil},
		{[]int{3, 4}, 0, 10, []uint64{3, 4}},
		{[]int{3, 4}, 0, 7, []uint64{3, 4}},
		{[]int{3, 4}, 0, 5, []uint64{3, 2}},
		{[]int{3, 4}, 0, 3, []uint64{3}},
		{[]int{3, 4}, 2, 3, []uint64{1, 2}},
		{[]int{3, 4}, 3, 10, []uint64{4}},
		{[]int{3, 4}, 7, 10, nil},
		{[]int{0, 3, 0, 4, 0}, 0, 10, []uint64{3, 4}},
		{[]int{0, 3, 0, 4, 0}, 5, 10, []uint64{2}},
		{make([]int, maxVectors+1), 0, 10, nil},
	} {
		var slices [][]byte
		for _, n := range c.slices {
			slices = append(slices, make([]byte, n))
		}
		var v vector
		n, sum := v.fill(slices, c.skip, c.most)
		var got []uint64
		for i := range n {
			got = append(got, uint64(v[i].Len))
			sum -= int(v[i].Len)
		}
		require.Equal(t, c.want, got, "%v from %d, at most %d", c.slices, c.skip, c.most)
		require.Zero(t, sum)
	}
	many := make([][]byte, maxVectors+1)
	for i := range many {
		many[i] = make([]byte, 1)
	}
	n, sum := new(vector).fill(many, 0, 1000)
	require.Equal(t, []int{maxVectors, maxVectors}, []int{n, sum})
}

// What takes several calls arrives as it was, however it is cut.
func TestSeveralCalls(t *testing.T) {
	for _, lengths := range [][]int{
		{callBytes},
		{3*callBytes + 17},
		{48, callBytes, 48, callBytes - 48, 48, callBytes / 2, 1},
		{callBytes, callBytes, callBytes},
	} {
		var from [][]byte
		var want []byte
		for i, n := range lengths {
			part := bytes.Repeat([]byte{byte(i + 1), 7, byte(n), 11, 13}, n/5+1)[:n]
			from, want = append(from, part), append(want, part...)
		}
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		require.NoError(t, err)
		require.NoError(t, unix.SetNonblock(fds[0], true))
		far := os.NewFile(uintptr(fds[1]), "far")
		came := make(chan []byte)
		go func() {
			got, _ := io.ReadAll(far)
			came <- got
		}()
		var v vector
		for len(from) > 0 {
			n, err := v.write(fds[0], from)
			require.NoError(t, err)
			for n > 0 || len(from) > 0 && len(from[0]) == 0 {
				taken := min(n, len(from[0]))
				from[0] = from[0][taken:]
				if n -= taken; len(from[0]) == 0 {
					from = from[1:]
				}
			}
			runtime.Gosched()
		}
		require.NoError(t, unix.Close(fds[0]))
		require.True(t, bytes.Equal(want, <-came), "%v", lengths)
		require.NoError(t, far.Close())
	}
}

// Room for a lot lets a lot leave by one write, though by several calls.
func TestWritesOnWhileThereIsRoom(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(fds[0])) }()
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 16*callBytes); err != nil {
		require.NoError(t, unix.Close(fds[1]))
		t.Skip("skipped: only root may ask for a buffer as long: ", err)
	}
	n, err := new(vector).write(fds[0], [][]byte{make([]byte, 2*callBytes), make([]byte, 1)})
	require.NoError(t, err)
	require.Equal(t, 2*callBytes+1, n)
	require.NoError(t, unix.Close(fds[1]))
	n, err = new(vector).write(fds[0], [][]byte{make([]byte, 1)})
	require.ErrorIs(t, err, unix.EPIPE)
	require.Zero(t, n)
}
