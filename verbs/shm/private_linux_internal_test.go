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

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
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
			require.Equal(t, n, len(memory))
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

// TestArenaUsedUp comes to the end of the addresses, and is given new ones as long as they are in proportion
// to what is allocated, and then freed ones, as zeros.
func TestArenaUsedUp(t *testing.T) {
	p := newPrivate(t)
	first := take(t, p, 3*pageBytes)
	first[7] = 7
	require.True(t, p.free(first))
	require.False(t, p.free(first))
	require.Zero(t, first[7])
	useUp(t, p)
	again := take(t, p, 2*pageBytes)
	require.Equal(t, bounds.Address(first), bounds.Address(again), "a few pages are no reason for another arena")
	most := take(t, p, leastArena)
	require.Len(t, p.arenas, 2)
	useUp(t, p)
	apart := take(t, p, pageBytes)
	require.Len(t, p.arenas, 3, "freed addresses are not used while few are reserved")
	require.True(t, p.free(most))
	useUp(t, p)
	require.Equal(t, bounds.Address(most), bounds.Address(take(t, p, leastArena)))
	require.Len(t, p.arenas, 3)
	require.True(t, p.free(apart))
	require.True(t, p.free(again))
	require.False(t, p.free(make([]byte, 8)))
}

// TestReservedInProportion allocates, and frees what it has, at random. An arena that exceeds what is in proportion to
// what was allocated at once is reserved only where no freed piece has room. Any other at least doubles what is
// reserved, or takes it to what is in proportion, so that there are few.
func TestReservedInProportion(t *testing.T) {
	random := testsize.Random(t, 7)
	for _, largest := range []int{pageBytes, 1 << 20, 40 << 20, 1 << 30} {
		p := newPrivate(t)
		var held [][]byte
		for range testsize.N(500) {
			if len(held) > 0 && random.IntN(5) < 2 {
				i := random.IntN(len(held))
				require.True(t, p.free(held[i]))
				held[i] = held[len(held)-1]
				held = held[:len(held)-1]
				continue
			}
			before, arenas, n := p.reserved, p.arenas, 1+random.IntN(largest)
			memory, err := p.reserve(n)
			require.NoError(t, err)
			held = append(held, memory)
			most := reservedTimes * p.most
			if len(p.arenas) == len(arenas) {
				continue
			}
			if p.reserved <= max(leastArena, most) {
				require.GreaterOrEqual(t, p.reserved-before, min(before, most-before))
				continue
			}
			for _, a := range arenas {
				_, ok := a.allocations.reuse(wholePages(n))
				require.False(t, ok, "a freed piece has room for %d bytes", n)
			}
		}
	}
}

// newPrivate is without its addresses when the test is over.
func newPrivate(t *testing.T) *private {
	p := new(private)
	t.Cleanup(func() {
		for _, a := range p.arenas {
			require.NoError(t, unmap(a.memory))
		}
	})
	return p
}

// take reserves n bytes and touches the last of them, which must be 0.
func take(t *testing.T, p *private, n int) []byte {
	memory, err := p.reserve(n)
	require.NoError(t, err)
	require.Zero(t, memory[n-1])
	memory[n-1] = 1
	return memory
}

// useUp has no arena have addresses left that were never used.
func useUp(t *testing.T, p *private) {
	for _, a := range p.arenas {
		if rest := a.allocations.end - a.allocations.next; rest > 0 {
			_, ok := a.allocations.fresh(rest, pageBytes)
			require.True(t, ok)
		}
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

// TestNoRoomForArena has the system refuse more address space than is needed, where what is needed is taken, and so
// much as is asked for, which is told.
func TestNoRoomForArena(t *testing.T) {
	const all = math.MaxInt &^ (hugePageBytes - 1)
	p := newPrivate(t)
	// Much was allocated and reserved, so that as much again would be in proportion.
	p.reserved, p.most = all/4, all/reservedTimes
	take(t, p, hugePageBytes)
	require.Len(t, p.arenas, 1)
	require.Equal(t, leastArena, len(p.arenas[0].memory))
	_, err := p.reserve(all)
	require.ErrorIs(t, err, verbs.ErrMemory)
	require.ErrorContains(t, err, "reserving")
	require.Len(t, p.arenas, 1)
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
