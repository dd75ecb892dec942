package cases

import (
	"bytes"
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func needSockets(t *testing.T) {
	t.Helper()
	if SocketsUnable != "" {
		t.Skip("skipped: " + SocketsUnable)
	}
}

// ends are the two ends of a connection, ready for the raw cases.
func ends(t *testing.T, ctx context.Context) [2]*SocketEnd {
	t.Helper()
	needSockets(t)
	files, err := ConnectedSockets()
	require.NoError(t, err)
	var wires [2]*SocketEnd
	for i, file := range files {
		t.Cleanup(func() { file.Close() })
		wires[i] = NewSocketEnd(ctx, int(file.Fd()), cellsOf(t, "socket_lat:100000", "socket_bw:65536"))
		require.NoError(t, PrepareSocket(wires[i].socket))
	}
	return wires
}

func TestAnIterationMovesEveryByte(t *testing.T) {
	for _, test := range []struct {
		name         string
		talk, answer SocketStep
		n, moved     int
	}{
		{"there and back", pingSocket, pongSocket, 100000, 100000},
		{"a stream", streamOut, streamIn, 65536, InFlight * 65536},
	} {
		t.Run(test.name, func(t *testing.T) {
			wires := ends(t, t.Context())
			for i := range test.moved {
				wires[0].memory[i] = byte(i * 7 >> 3)
			}
			answered := make(chan error)
			go func() { answered <- test.answer(wires[1], test.n) }()
			require.NoError(t, test.talk(wires[0], test.n))
			require.NoError(t, <-answered)
			assert.True(t, bytes.Equal(wires[0].memory[:test.moved], wires[1].memory[:test.moved]))
		})
	}
}

func TestAnEndThatIsGoneIsNoticed(t *testing.T) {
	needSockets(t)
	files, err := ConnectedSockets()
	require.NoError(t, err)
	defer files[0].Close()
	w := &SocketEnd{ctx: t.Context(), socket: int(files[0].Fd()), memory: make([]byte, 8)}
	require.NoError(t, PrepareSocket(w.socket))
	require.NoError(t, files[1].Close())
	assert.ErrorIs(t, pongSocket(w, 8), ErrSocketClosed)
}

func TestASilentEndIsWaitedForInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wires := ends(t, ctx)
	cancel()
	assert.ErrorIs(t, wires[0].receive(wires[0].memory[:8]), context.Canceled)
}

func TestAFailingSocketIsNamed(t *testing.T) {
	needSockets(t)
	w := &SocketEnd{ctx: t.Context(), socket: -1, memory: make([]byte, 8)}
	err := w.send(w.memory)
	assert.ErrorIs(t, err, syscall.EBADF)
	assert.EqualError(t, err, "bench: socket: write: bad file descriptor")
}
