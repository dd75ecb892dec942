//go:build linux

package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longCall is from how many bytes on a system call tells Go's scheduler that it goes
// on: copying them takes longer than telling.
const longCall = 32 << 10

// vector is what the system takes for a list of slices. It is of the heap, and its
// entries keep what they point to alive during the call.
type vector [maxVectors]unix.Iovec

// fill makes the entries for the slices that are not empty, at most maxVectors, and
// tells how many there are and of how many bytes.
func (v *vector) fill(slices [][]byte) (n, bytes int) {
	for _, s := range slices {
		if len(s) == 0 {
			continue
		}
		if n == maxVectors {
			break
		}
		v[n].Base = unsafe.SliceData(s)
		v[n].SetLen(len(s))
		n++
		bytes += len(s)
	}
	return n, bytes
}

// transfer does readv or writev, or read or write where there is one slice, without
// Go's poller. Sound because each entry is a slice that the caller gave, which the
// system reads or fills within its length before the call returns; the descriptor does
// not block, so that the scheduler need not know of a short call.
func (v *vector) transfer(one, many uintptr, fd int, slices [][]byte) (int, error) {
	n, bytes := v.fill(slices)
	defer clear(v[:n])
	for {
		var done uintptr
		var errno syscall.Errno
		switch {
		case n == 1 && bytes < longCall:
			done, _, errno = syscall.RawSyscall(one, uintptr(fd), uintptr(unsafe.Pointer(v[0].Base)), uintptr(bytes))
		case bytes < longCall:
			done, _, errno = syscall.RawSyscall(many, uintptr(fd), uintptr(unsafe.Pointer(v)), uintptr(n))
		default:
			done, _, errno = syscall.Syscall(many, uintptr(fd), uintptr(unsafe.Pointer(v)), uintptr(n))
		}
		if errno == 0 {
			return int(done), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

func (v *vector) read(fd int, into [][]byte) (int, error) {
	return v.transfer(unix.SYS_READ, unix.SYS_READV, fd, into)
}

// write to a connection that is gone is an error: Go's runtime ends the process by
// SIGPIPE for standard output and error only.
func (v *vector) write(fd int, from [][]byte) (int, error) {
	return v.transfer(unix.SYS_WRITE, unix.SYS_WRITEV, fd, from)
}
