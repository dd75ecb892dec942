//go:build linux

package shm

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapAligned maps size bytes at a multiple of align, a power of two, and gives the
// ends that alignment leaves over back. Sound because the memory is new, and a
// slice of it is made only of what stays mapped.
func mapAligned(fd, size, align, flags int) ([]byte, error) {
	reserve := uintptr(size)
	if align > pageBytes {
		reserve += uintptr(align)
	}
	base, err := unix.MmapPtr(-1, 0, nil, reserve, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of address space: %w", reserve, err)
	}
	skip := -uintptr(base) & uintptr(align-1)
	if skip > 0 {
		_ = unix.MunmapPtr(base, skip)
	}
	if rest := reserve - skip - uintptr(size); rest > 0 {
		_ = unix.MunmapPtr(unsafe.Add(base, skip+uintptr(size)), rest)
	}
	at, err := unix.MmapPtr(fd, 0, unsafe.Add(base, skip), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_FIXED)
	if err != nil {
		_ = unix.MunmapPtr(unsafe.Add(base, skip), uintptr(size))
		return nil, fmt.Errorf("mapping %d bytes: %w", size, err)
	}
	return unsafe.Slice((*byte)(at), size), nil
}

// unmap gives a mapping of mapAligned back. Sound because nobody reaches the memory
// any more: see who calls it.
func unmap(memory []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(memory)), uintptr(len(memory))); err != nil {
		return fmt.Errorf("shm: munmap of %d bytes: %w", len(memory), err)
	}
	return nil
}

// retire gives the memory of a mapping back but keeps its addresses, on pages that
// belong to nobody, so that a goroutine that is late touches nothing. The addresses
// are given back when owner is unreachable. Sound because the mapping is whole, one
// that mapAligned made, and owner is reachable from whatever knows its addresses but
// the slices that the program has from it.
func retire[T any](owner *T, memory []byte) error {
	base := unsafe.Pointer(unsafe.SliceData(memory))
	if _, err := unix.MmapPtr(-1, 0, base, uintptr(len(memory)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
		return fmt.Errorf("shm: retiring a mapping of %d bytes: %w", len(memory), err)
	}
	runtime.AddCleanup(owner, func(memory []byte) { _ = unmap(memory) }, memory)
	return nil
}
