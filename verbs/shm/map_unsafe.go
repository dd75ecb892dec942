//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reserve reserves size bytes of address space at a multiple of align, a power of two. They cannot be accessed yet. It
// unmaps the ends that alignment leaves over. It is sound because the addresses are new, and the returned slice covers
// only what stays.
func reserve(size, align int) ([]byte, error) {
	whole := uintptr(size)
	if align > pageBytes {
		whole += uintptr(align)
	}
	base, err := unix.MmapPtr(-1, 0, nil, whole, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of address space: %w", whole, &memoryError{&addresses, uint64(whole), err})
	}
	skip := -uintptr(base) & uintptr(align-1)
	if skip > 0 {
		_ = unix.MunmapPtr(base, skip)
	}
	if rest := whole - skip - uintptr(size); rest > 0 {
		_ = unix.MunmapPtr(unsafe.Add(base, skip+uintptr(size)), rest)
	}
	return unsafe.Slice((*byte)(unsafe.Add(base, skip)), size), nil
}

// mapShared maps size bytes of a file at a multiple of a huge page. It is sound because the addresses are those of
// reserve.
func mapShared(fd, size int) ([]byte, error) {
	memory, err := reserve(size, hugePageBytes)
	if err != nil {
		return nil, err
	}
	_, err = unix.MmapPtr(fd, 0, unsafe.Pointer(unsafe.SliceData(memory)), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mapping %d bytes: %w", size, err), unmap(memory))
	}
	return memory, nil
}

// unmap unmaps memory of reserve, or whole pages of it. It is sound because callers ensure that the memory is not
// accessed any more.
func unmap(memory []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(memory)), uintptr(len(memory))); err != nil {
		return fmt.Errorf("shm: munmap of %d bytes: %w", len(memory), err)
	}
	return nil
}

// retire frees the memory of a mapping but keeps its addresses. It maps them to retiredFD, a file of memory as large as
// a segment, so that a late goroutine touches no other memory. That takes no more than the mapping did: shared pages,
// which neither RLIMIT_DATA nor vm.overcommit_memory counts, and no descriptor. The addresses are unmapped when owner
// is unreachable. It is sound because the mapping is a whole one of mapShared, and everything that knows its addresses
// reaches owner, except slices that the program has.
func retire[T any](owner *T, memory []byte, retiredFD, size int) error {
	// A mapping without pages takes the system little time.
	_, _ = inPieces(context.Background(), memory, freedPiece, func(piece []byte) error { return unix.Madvise(piece, unix.MADV_DONTNEED) })
	for rest := memory; len(rest) > 0; rest = rest[min(size, len(rest)):] {
		length := min(size, len(rest))
		base := unsafe.Pointer(unsafe.SliceData(rest))
		if _, err := unix.MmapPtr(retiredFD, 0, base, uintptr(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
			return fmt.Errorf("shm: retiring a mapping of %d bytes: %s: %w", len(memory), limitReason(err), err)
		}
	}
	runtime.AddCleanup(owner, func(memory []byte) { _ = unmap(memory) }, memory)
	return nil
}
