//go:build linux

package jobtest

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ResetConnections resets every TCP connection of this process. Both ends see a reset by the peer, as when a host
// between them sends it.
func ResetConnections() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("jobtest: %w", err)
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			return fmt.Errorf("jobtest: %w", err)
		}
		if protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL); err != nil || protocol != unix.IPPROTO_TCP {
			continue
		}
		if _, err := unix.Getpeername(fd); err != nil {
			continue
		}
		// Connecting to no address ends a connection by a reset.
		nowhere := unix.RawSockaddr{Family: unix.AF_UNSPEC}
		// Sound: the kernel reads the address before the call returns.
		_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&nowhere)), unsafe.Sizeof(nowhere))
		if errno != 0 {
			return fmt.Errorf("jobtest: resetting a connection: %w", errno)
		}
	}
	return nil
}
