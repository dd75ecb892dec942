package shm_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// held is what a process holds that a device could leave behind; pages are of address
// space, of which a segment takes as much as the machine has memory.
type held struct{ files, goroutines, pages int }

func holds(t *testing.T) held {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	sizes, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(sizes))[0])
	require.NoError(t, err)
	return held{len(files), runtime.NumGoroutine(), pages}
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
	runtime.GC()
	before := holds(t)
	for range 50 {
		once()
	}
	const slack = 1 << 30 / 4096
	// What a closed connection's goroutines hold is gone a moment later, and the
	// addresses of a closed device when it is collected.
	var after held
	t.Cleanup(func() { t.Logf("before %+v, after %+v", before, after) })
	await.True(t, "all to be given back", func() bool {
		runtime.GC()
		after = holds(t)
		return after.files <= before.files && after.goroutines <= before.goroutines && after.pages <= before.pages+slack
	})
}
