//go:build linux

package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollNow is an epoll_wait that does not wait, so that it can bypass Go's scheduler. It is sound because events
// belongs to the caller, and the system writes at most len(events) entries before the call returns.
func epollNow(fd int, events *[64]unix.EpollEvent) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(events)), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
