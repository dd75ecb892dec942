//go:build linux && !race

package shm

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// aside is a context that does something whenever it is looked at, and is never over.
type aside struct {
	context.Context
	do func()
}

func (a aside) Err() error { a.do(); return nil }

// TestBackingKeepsNobodyOut has other memory come and go, and connections be made, between the pieces of memory that
// is being backed.
func TestBackingKeepsNobodyOut(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			device, other := open(), open()
			const pieces = 4
			memory, err := device.ReserveMemory(pieces * backedPiece)
			require.NoError(t, err)
			looks := 0
			backed, err := device.BackMemory(aside{t.Context(), func() {
				looks++
				small, err := device.AllocateMemory(pageBytes)
				require.NoError(t, err)
				require.NoError(t, device.FreeMemory(small))
				_, err = device.Neighbor(other.Address())
				require.NoError(t, err)
			}}, memory)
			require.NoError(t, err)
			require.Equal(t, len(memory), backed)
			require.Equal(t, pieces-1, looks)
		})
	}
}

// TestReservedHasNoPages reserves memory, which has pages when it is backed.
func TestReservedHasNoPages(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			device := form.open(t)()
			const n = 64 << 20
			before := resident(t)
			memory, err := device.ReserveMemory(n)
			require.NoError(t, err)
			require.Zero(t, memory[n/2])
			require.Less(t, resident(t), before+n/2)
			backed, err := device.BackMemory(t.Context(), memory)
			require.NoError(t, err)
			require.Equal(t, n, backed)
			require.Greater(t, resident(t), before+n/2)
			require.NoError(t, device.FreeMemory(memory))
		})
	}
}

// resident is how many bytes of this process have pages.
func resident(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var all, resident int
	_, err = fmt.Sscan(string(text), &all, &resident)
	require.NoError(t, err)
	return resident * pageBytes
}

// TestBackForeignMemory backs memory that is none of the segment.
func TestBackForeignMemory(t *testing.T) {
	_, err := openTest(t).BackMemory(t.Context(), make([]byte, pageBytes))
	require.ErrorContains(t, err, "ReserveMemory did not give")
}

// TestPieces stops at an error and between pieces when the context is over.
func TestPieces(t *testing.T) {
	memory := make([]byte, 10)
	var lengths []int
	count := func(piece []byte) error { lengths = append(lengths, len(piece)); return nil }
	done, err := inPieces(t.Context(), memory, 4, count)
	require.NoError(t, err)
	require.Equal(t, 10, done)
	require.Equal(t, []int{4, 4, 2}, lengths)

	done, err = inPieces(t.Context(), memory, 4, func([]byte) error { return unix.ENOMEM })
	require.ErrorIs(t, err, unix.ENOMEM)
	require.Zero(t, done)

	over, end := context.WithCancelCause(t.Context())
	end(os.ErrDeadlineExceeded)
	done, err = inPieces(over, memory, 4, count)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Equal(t, 4, done)
}
