package shm_test

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// held is what a process holds that a device could leave behind.
type held struct{ files, mappings, goroutines int }

func holds(t *testing.T) held {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return held{len(files), bytes.Count(maps, []byte("memfd:rma")), runtime.NumGoroutine()}
}

// TestNothingIsLeft opens two devices, has one write to the other, and closes them,
// many times.
func TestNothingIsLeft(t *testing.T) {
	once := func() {
		a, err := shm.Open(shm.Options{})
		require.NoError(t, err)
		b, err := shm.Open(shm.Options{})
		require.NoError(t, err)
		memory, err := b.AllocateMemory(3 << 20)
		require.NoError(t, err)
		region, err := b.RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteWrite)
		require.NoError(t, err)
		neighbor, err := a.Neighbor(b.Address())
		require.NoError(t, err)
		mapped, err := neighbor.Map(region.Remote())
		require.NoError(t, err)
		mapped[5] = 9
		require.Equal(t, byte(9), memory[5])
		stop, err := a.Watch(b.Address(), func(error) {})
		require.NoError(t, err)
		stop()
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
	once()
	before := holds(t)
	for range 50 {
		once()
	}
	var after held
	// What a closed connection's goroutines hold is gone a moment later.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if after = holds(t); after.files <= before.files && after.goroutines <= before.goroutines {
			break
		}
		require.True(t, time.Now().Before(end), "before %+v, after %+v", before, after)
	}
	require.LessOrEqual(t, after.mappings, before.mappings+1)
	shared, err := os.ReadDir("/dev/shm")
	if err == nil {
		for _, entry := range shared {
			require.False(t, strings.Contains(entry.Name(), "rma"), "%s is left in /dev/shm", entry.Name())
		}
	}
}
