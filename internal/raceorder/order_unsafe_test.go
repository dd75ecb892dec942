package raceorder_test

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/raceorder"
)

// TestOrder is for the race detector. A word in mapped memory orders two goroutines. The detector does not see that
// word, just as it does not see another process.
func TestOrder(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	// Sound: a page is aligned to 4 bytes, and stays mapped until both goroutines have ended.
	word := (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(memory)))

	shared := 0
	go func() {
		shared = 7
		raceorder.Release()
		word.Store(1)
	}()
	deadline := time.Now().Add(await.Limit)
	for word.Load() == 0 {
		require.True(t, time.Now().Before(deadline), "no notification")
	}
	raceorder.Acquire()
	require.Equal(t, 7, shared)
}
