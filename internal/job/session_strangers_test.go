package job_test

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/world"
)

// lines are what a logger was told.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSpace(l.text.String()), "\n")
}

// openDescriptors is how many this process has, 0 where the system does not say.
func openDescriptors() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

// Strangers that hold on, whatever they have said, take a bounded number of descriptors, goroutines and log lines, and keep
// out no client that has the key. It runs beside no other test of the process, whose goroutines it would count.
func TestStrangersThatHoldOn(t *testing.T) {
	const (
		strangers = 400
		// unproven is how many connections may be heard at once. As many may have been ended just now.
		unproven = 128
		most     = 2*unproven + 50
		mostTold = 6
	)
	key := proof.NewKey()
	var told lines
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithKey(key), world.WithLogger(slog.New(slog.NewTextHandler(&told, nil))))
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		s, err := job.ListenerOf(l).Accept(t.Context())
		if err == nil {
			err = s.Begin()
		}
		if err == nil {
			<-s.Left()
			err = s.World().Close()
		}
		served <- err
	}()
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors()
	var held []net.Conn
	hold := func(says string) {
		conn, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		held = append(held, conn)
		_, _ = conn.Write([]byte(says))
		require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+most)
		if descriptors > 0 && len(held)%20 == 0 {
			require.LessOrEqual(t, openDescriptors()-len(held), descriptors+most)
		}
	}
	says := []string{"x", "", "RMAproof", "RMA tcp port 1\r\n", "RMA tcp port 1\r\n12345678"}
	for i := range strangers {
		hold(says[i%len(says)*(i%2)])
	}
	w, err := world.Dial(t.Context(), l.Addr().String(), world.WithKey(key))
	require.NoError(t, err)
	for range unproven {
		hold("x")
	}
	require.NoError(t, w.Close())
	require.NoError(t, <-served)
	require.NoError(t, l.Close())
	for _, conn := range held {
		require.NoError(t, conn.Close())
	}
	require.LessOrEqual(t, len(told.all()), mostTold, "%s", strings.Join(told.all(), "\n"))
	await.True(t, "all goroutines and descriptors to be given back", func() bool {
		return runtime.NumGoroutine() <= goroutines && openDescriptors() <= descriptors
	})
}
