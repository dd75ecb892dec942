//go:build linux

package shm

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

func openTest(t testing.TB) *process {
	t.Helper()
	device, err := Open(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	return device.form.(*process)
}

// TestAllocations allocates and frees at random and looks at each step that nothing overlaps, that all is aligned, and
// that nothing is lost.
func TestAllocations(t *testing.T) {
	const pages = 4096
	random := testsize.Random(t, 2)
	for range testsize.N(5) {
		a := newAllocations(segmentStart, pages*pageBytes)
		var refused int
		for range 2000 {
			if random.IntN(5) < 3 {
				length, align := wholePages(1 + random.IntN(40*pageBytes))
				if random.IntN(10) == 0 {
					length, align = wholePages(hugePageBytes)
				}
				offset, ok := a.place(length, align)
				if !ok {
					refused++
					continue
				}
				require.Zero(t, offset%align)
				a.live[offset] = length
			} else {
				for offset := range a.live {
					length, live := a.drop(offset)
					require.True(t, live)
					a.keep(piece{offset, length})
					break
				}
			}
			require.NoError(t, whole(&a))
		}
		require.Positive(t, refused)
		for offset, length := range a.live {
			a.keep(piece{offset, length})
		}
		require.Equal(t, []piece{{segmentStart, a.next - segmentStart}}, a.spare)
		_, live := a.drop(1)
		require.False(t, live)
	}
}

// whole says what is wrong unless all that was ever used is live or spare, once, and
// spare pieces are in order and do not touch.
func whole(a *allocations) error {
	all := slices.Clone(a.spare)
	for offset, length := range a.live {
		all = append(all, piece{offset, length})
	}
	slices.SortFunc(all, func(x, y piece) int { return x.offset - y.offset })
	end := segmentStart
	for _, e := range all {
		if e.offset != end || e.length <= 0 {
			return fmt.Errorf("%v is after a piece that ends at %d", e, end)
		}
		end += e.length
	}
	if end != a.next {
		return fmt.Errorf("the last piece ends at %d, what was used at %d", end, a.next)
	}
	for i := 1; i < len(a.spare); i++ {
		if a.spare[i-1].offset+a.spare[i-1].length >= a.spare[i].offset {
			return fmt.Errorf("spare pieces %v and %v", a.spare[i-1], a.spare[i])
		}
	}
	return nil
}

// TestMoreThanThereIs asks for more than a machine has, up to the largest number.
func TestMoreThanThereIs(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			device := form.open(t)()
			memory, err := device.AllocateMemory(pageBytes)
			require.NoError(t, err)
			require.NoError(t, device.FreeMemory(memory))
			if p, ok := device.form.(*process); ok {
				// Freed pieces are looked at when the segment is used up.
				rest := p.allocations.end - p.allocations.next
				offset, ok := p.allocations.fresh(rest, pageBytes)
				require.True(t, ok)
				p.allocations.live[offset] = rest
			}
			for _, n := range []int{math.MaxInt, math.MaxInt - 1, math.MaxInt - pageBytes, math.MaxInt/2 + 1, 1 << 50} {
				_, err := device.AllocateMemory(n)
				require.ErrorIs(t, err, verbs.ErrMemory)
				require.ErrorContains(t, err, strconv.Itoa(n)+" bytes")
			}
			memory, err = device.AllocateMemory(pageBytes)
			require.NoError(t, err)
			require.NoError(t, device.FreeMemory(memory))
			if p, ok := device.form.(*process); ok {
				require.Len(t, p.allocations.spare, 1)
				require.NoError(t, whole(&p.allocations))
			}
		})
	}
}

// TestDirtyMemoryIsCleared has the system keep freed memory.
func TestDirtyMemoryIsCleared(t *testing.T) {
	p := openTest(t)
	memory, err := p.allocate(2 * pageBytes)
	require.NoError(t, err)
	for i := range memory {
		memory[i] = 9
	}
	fd := p.fd
	p.fd = -1
	require.NoError(t, p.free(memory))
	p.fd = fd
	require.Equal(t, make([]byte, 2*pageBytes), memory)
}

func TestMemoryComesBackZeroed(t *testing.T) {
	p := openTest(t)
	first, err := p.allocate(100_000)
	require.NoError(t, err)
	offset, inside := p.offsetOf(first)
	require.True(t, inside)
	for i := range first {
		first[i] = 7
	}
	require.NoError(t, p.free(first))
	require.Error(t, p.free(first))
	// The whole segment has to have been used before freed memory is.
	p.allocations.next = len(p.memory)
	again, err := p.allocate(50_000)
	require.NoError(t, err)
	second, _ := p.offsetOf(again)
	require.Equal(t, offset, second)
	require.Equal(t, make([]byte, 50_000), again)
	_, err = p.allocate(len(p.memory))
	require.ErrorIs(t, err, verbs.ErrMemory)
	require.ErrorContains(t, err, "bytes wanted of a segment of")
}

// A peer has the descriptor of the segment: it can do nothing to its length.
func TestSeals(t *testing.T) {
	p := openTest(t)
	require.Error(t, unix.Ftruncate(p.fd, 4096))
	require.Error(t, unix.Ftruncate(p.fd, int64(len(p.memory))*2))
	_, err := unix.FcntlInt(uintptr(p.fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	require.ErrorIs(t, err, unix.EPERM)
}

func TestUsers(t *testing.T) {
	require.NoError(t, sameUser(5, 5))
	err := sameUser(6, 5)
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "the peer belongs to user 6, this process to user 5")
}
