//go:build linux

package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollNow is epoll_wait that does not wait, so that it need not tell Go's scheduler.
// Sound because events is of the caller's and the system writes no more entries of it
// than it is told, before the call returns.
func epollNow(fd int, events *[64]unix.EpollEvent) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(events)), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
