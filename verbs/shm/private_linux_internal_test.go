//go:build linux && !race

package shm

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/bounds"
)

// mappings counts those of this process.
func mappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return bytes.Count(maps, []byte{'\n'})
}

// TestMemoryThatComesAndGoes allocates and frees, as a job with a window a step does:
// the process does not come to have a mapping for each.
func TestMemoryThatComesAndGoes(t *testing.T) {
	device := openFabric(t)()
	random := rand.New(rand.NewPCG(3, 4))
	once := func() {
		var all [][]byte
		for _, n := range []int{8192, hugePageBytes + 4096, 1 + random.IntN(9*pageBytes), hugePageBytes} {
			memory, err := device.AllocateMemory(n)
			require.NoError(t, err)
			require.Len(t, memory, n)
			require.Zero(t, bounds.Address(memory)%pageBytes)
			memory[0], memory[n-1] = 1, 1
			all = append(all, memory)
		}
		for _, i := range random.Perm(len(all)) {
			require.NoError(t, device.FreeMemory(all[i]))
			require.Error(t, device.FreeMemory(all[i]))
		}
	}
	once()
	before := mappings(t)
	rounds := testsize.N(50)
	for range rounds { // with four pieces of memory each
		once()
	}
	require.Less(t, mappings(t), before+rounds)
}

// TestArenaUsedUp comes to the end of the addresses, and is given freed ones again, as
// zeros, and then new ones.
func TestArenaUsedUp(t *testing.T) {
	var p private
	first, err := p.allocate(3 * pageBytes)
	require.NoError(t, err)
	first[7] = 7
	require.True(t, p.free(first))
	require.False(t, p.free(first))
	require.Zero(t, first[7])
	a := p.arenas[0]
	_, ok := a.places.fresh(a.places.end-a.places.next, pageBytes)
	require.True(t, ok)

	again, err := p.allocate(2 * pageBytes)
	require.NoError(t, err)
	require.Equal(t, bounds.Address(first), bounds.Address(again))
	more, err := p.allocate(2 * pageBytes)
	require.NoError(t, err)
	more[0] = 1
	require.Len(t, p.arenas, 2)
	require.True(t, p.free(again))
	require.True(t, p.free(more))
	require.False(t, p.free(make([]byte, 8)))
	for _, a := range p.arenas {
		require.NoError(t, unmap(a.memory))
	}
}

// TestLockedMemoryIsCleared frees memory whose pages the system keeps.
func TestLockedMemoryIsCleared(t *testing.T) {
	device := openFabric(t)()
	memory, err := device.AllocateMemory(pageBytes)
	require.NoError(t, err)
	memory[9] = 9
	if err := unix.Mlock(memory); err != nil {
		t.Skipf("skipped: no memory can be locked: %v", err)
	}
	require.NoError(t, device.FreeMemory(memory))
	require.Zero(t, memory[9])
	require.NoError(t, unix.Munlock(memory))
}

// TestNoRoomForArena has the system refuse an arena: one that is as large as can be is
// taken, or the refusal told.
func TestNoRoomForArena(t *testing.T) {
	const all = math.MaxInt &^ (hugePageBytes - 1)
	a, err := newArena(hugePageBytes, all)
	require.NoError(t, err)
	require.NoError(t, unmap(a.memory))
	require.Less(t, len(a.memory), all)
	require.Equal(t, len(a.memory), a.places.end)
	_, err = newArena(all, all)
	require.ErrorContains(t, err, "reserving")
}

// TestLateOnFabric uses memory of a fabric when all its devices have been closed.
func TestLateOnFabric(t *testing.T) {
	fabric := NewFabric()
	device, err := fabric.Open()
	require.NoError(t, err)
	late, err := device.AllocateMemory(pageBytes)
	require.NoError(t, err)
	late[0] = 5
	require.NoError(t, device.Close())
	require.Zero(t, late[0])
	late[0] = 6

	device, err = fabric.Open()
	require.NoError(t, err)
	memory, err := device.AllocateMemory(pageBytes)
	require.NoError(t, err)
	require.NotEqual(t, bounds.Address(late), bounds.Address(memory))
	late[0] = 7
	require.Zero(t, memory[0])
	var nothing verbs.Device = device
	require.Error(t, nothing.FreeMemory(late))
	require.NoError(t, device.Close())
}
