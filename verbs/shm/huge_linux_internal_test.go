//go:build linux

package shm

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/bounds"
)

// TestHugePages looks in what pages the system has a segment.
func TestHugePages(t *testing.T) {
	// The head is one such page, what is allocated here three more, and one of 4 KiB.
	const size = 3*hugePageBytes + pageBytes
	for _, small := range []bool{false, true} {
		device, err := Open(Options{SmallPages: small})
		require.NoError(t, err)
		p := device.form.(*process)
		memory, err := device.AllocateMemory(size)
		require.NoError(t, err)
		require.Equal(t, make([]byte, size), memory)
		for i := range memory {
			memory[i] = byte(i)
		}
		other, err := device.AllocateMemory(hugePageBytes)
		require.NoError(t, err)
		other[0] = 5
		huge := inHugePages(t, p.memory)
		require.NoError(t, device.FreeMemory(memory))
		require.Equal(t, make([]byte, size), memory, "freed memory of a segment that others may have mapped")
		require.EqualValues(t, 5, other[0])
		freed := inHugePages(t, p.memory)
		require.NoError(t, device.Close())
		switch {
		case small:
			require.Zero(t, huge)
		case huge < 5*hugePageBytes && !collapses(t, 5*hugePageBytes):
			t.Skip("skipped: this system puts no shared memory on huge pages, or has none left")
		default:
			require.Equal(t, 5*hugePageBytes, huge)
			require.Equal(t, 2*hugePageBytes, freed)
		}
	}
}

// collapses reports whether the system puts shared memory on huge pages, and has size bytes of them.
func collapses(t *testing.T, size int) bool {
	fd, err := unix.MemfdCreate("probe", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, int64(size)))
	memory, err := mapShared(fd, size)
	require.NoError(t, err)
	defer func() { require.NoError(t, unmap(memory)) }()
	clear(memory)
	return unix.Madvise(memory, unix.MADV_COLLAPSE) == nil && inHugePages(t, memory) == size
}

// inHugePages is how many bytes of a mapping of shared memory are in huge pages.
func inHugePages(t *testing.T, memory []byte) int {
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("skipped: in what pages memory is cannot be read:", err)
	}
	begin, found := fmt.Sprintf("%x-", bounds.Address(memory)), false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var kilobytes int
		if found = found || strings.HasPrefix(lines.Text(), begin); !found {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "ShmemPmdMapped: %d kB", &kilobytes); err == nil {
			return kilobytes << 10
		}
	}
	t.Skip("skipped: the system does not say in what pages memory is")
	return 0
}
