//go:build linux

package shm

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

func openTest(t testing.TB) *process {
	t.Helper()
	device, err := Open(Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	return device.form.(*process)
}

// TestPlaces allocates and frees at random and looks at each step that nothing
// overlaps, that all is aligned, and that nothing of the segment is lost.
func TestPlaces(t *testing.T) {
	const pages = 4096
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		p := &process{memory: make([]byte, pages*pageBytes), next: segmentStart, live: map[int]int{}}
		var refused int
		for range 2000 {
			if random.IntN(5) < 3 {
				length, align := (1+random.IntN(40))*pageBytes, pageBytes
				if random.IntN(10) == 0 {
					length, align = hugePageBytes, hugePageBytes
				}
				offset, ok := p.place(length, align)
				if !ok {
					refused++
					continue
				}
				require.Zero(t, offset%align)
				p.live[offset] = length
			} else {
				for offset, length := range p.live {
					delete(p.live, offset)
					p.keep(extent{offset, length})
					break
				}
			}
			all := slices.Clone(p.spare)
			for offset, length := range p.live {
				all = append(all, extent{offset, length})
			}
			slices.SortFunc(all, func(a, b extent) int { return a.offset - b.offset })
			end := segmentStart
			for i, e := range all {
				require.GreaterOrEqual(t, e.offset, end, "%v begins within %v", e, all[max(0, i-1)])
				end = e.offset + e.length
			}
			require.LessOrEqual(t, end, p.next)
			for i := 1; i < len(p.spare); i++ {
				require.Less(t, p.spare[i-1].offset+p.spare[i-1].length, p.spare[i].offset, "spare pieces touch, or are out of order")
			}
		}
		require.Positive(t, refused)
		for offset, length := range p.live {
			p.keep(extent{offset, length})
		}
		clear(p.live)
		lost := p.next - segmentStart
		for _, e := range p.spare {
			lost -= e.length
		}
		require.Less(t, lost, len(p.memory)/2, "alignment has cost %d bytes", lost)
	}
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
	p.next = len(p.memory)
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
