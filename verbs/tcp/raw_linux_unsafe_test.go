//go:build linux

package tcp_test

import (
	"syscall"
	"unsafe"
)

// rawReadOnce reads without telling Go's scheduler. Sound because the system writes no
// more than len(into) bytes, before it returns. into is not empty.
func rawReadOnce(fd int, into []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
