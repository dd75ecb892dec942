package main

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
	if rawUnable != "" {
		t.Skip("skipped: " + rawUnable)
	}
}

func TestSocketsAreMeasuredBetweenTwoProcesses(t *testing.T) {
	needSockets(t)
	// They use no device, so that each will do.
	results := measured(t, "-device", "tcp", "-repeat", "2", "socket_lat:65536,65537", "socket_bw:65536")
	assert.Len(t, results, 3)
	for name, r := range results {
		assert.Positive(t, r.Value, name)
		assert.Equal(t, 2, r.Ranks, name)
		assert.Equal(t, 2, r.Repeat, name)
		assert.LessOrEqual(t, r.Min, r.Max, name)
	}
}

// ends are the two ends of a connection, ready for the raw cases.
func ends(t *testing.T, ctx context.Context) [2]*wire {
	t.Helper()
	needSockets(t)
	files, err := connected()
	require.NoError(t, err)
	var wires [2]*wire
	for i, file := range files {
		t.Cleanup(func() { file.Close() })
		wires[i] = newWire(ctx, int(file.Fd()), jobOf(t, "socket_lat:100000", "socket_bw:65536").cells)
		require.NoError(t, prepareSocket(wires[i].socket))
	}
	return wires
}

func TestATurnMovesEveryByte(t *testing.T) {
	for _, test := range []struct {
		name         string
		talk, answer wireStep
		n, moved     int
	}{
		{"there and back", pingSocket, pongSocket, 100000, 100000},
		{"a stream", streamOut, streamIn, 65536, inFlight * 65536},
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
	files, err := connected()
	require.NoError(t, err)
	defer files[0].Close()
	w := &wire{ctx: t.Context(), socket: int(files[0].Fd()), memory: make([]byte, 8)}
	require.NoError(t, prepareSocket(w.socket))
	require.NoError(t, files[1].Close())
	assert.ErrorIs(t, pongSocket(w, 8), errOtherEnd)
}

func TestASilentEndIsWaitedForInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	wires := ends(t, ctx)
	cancel()
	assert.ErrorIs(t, wires[0].receive(wires[0].memory[:8]), context.Canceled)
}

func TestAFailingSocketIsNamed(t *testing.T) {
	needSockets(t)
	w := &wire{ctx: t.Context(), socket: -1, memory: make([]byte, 8)}
	err := w.send(w.memory)
	assert.ErrorIs(t, err, syscall.EBADF)
	assert.EqualError(t, err, "bench: socket: write: bad file descriptor")
}

func TestAnEndOfASocketIsStartedByBenchOnly(t *testing.T) {
	for _, value := range []string{"2", "-1", "x"} {
		t.Setenv(socketVariable, value)
		var stdout, stderr bytes.Buffer
		assert.Equal(t, 1, run(t.Context(), []string{"socket_lat"}, &stdout, &stderr))
		assert.Contains(t, stderr.String(), `RMA_BENCH_SOCKET_RANK="`+value+`": allowed are 0 and 1`)
	}
}

func TestSocketsThatTakeTooLongEnd(t *testing.T) {
	needSockets(t)
	var stdout, stderr bytes.Buffer
	assert.Equal(t, 1, run(t.Context(), []string{"-timeout", "1ms", "socket_lat:8"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "not done in time: 1ms (-timeout)")
}
