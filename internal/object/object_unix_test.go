//go:build unix

package object_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/object"
)

func TestOfMapping(t *testing.T) {
	memory, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(memory)) }()
	for _, part := range [][]byte{memory, memory[4096:], memory[10:20]} {
		o, ok := object.Of(part, func(int) {}, 1)
		require.False(t, ok)
		require.Nil(t, o.Alive())
	}
}

// BenchmarkOfMapping measures Of for memory outside of Go's heap.
func BenchmarkOfMapping(b *testing.B) {
	memory, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(b, err)
	defer func() { require.NoError(b, unix.Munmap(memory)) }()
	b.ReportAllocs()
	for b.Loop() {
		object.Of(memory, func(int) {}, 1)
	}
}
