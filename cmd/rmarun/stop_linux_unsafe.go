//go:build linux

package main

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopSelf stops this process as SIGTSTP does by default. It returns when the process is continued, or at once if its
// process group is orphaned. The runtime keeps its handler of a signal that it has caught once. So stopSelf asks the
// kernel for the default action, and then for the handler again. The signal is for this thread, which gets it before
// Tgkill returns and the handler is restored.
func stopSelf() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Zero is the default action in every kernel's struct sigaction, and no struct sigaction is longer than the
	// array.
	var byDefault, caught [16]uint64
	if !exchangeAction(&byDefault, &caught) {
		return
	}
	_ = unix.Tgkill(os.Getpid(), unix.Gettid(), syscall.SIGTSTP)
	exchangeAction(&caught, new([16]uint64))
}

// exchangeAction sets the action of SIGTSTP, and the kernel writes the previous one. The kernel reads and writes
// fewer bytes than both arrays have, and keeps no pointer.
func exchangeAction(set, was *[16]uint64) bool {
	const sizeOfMask = 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(syscall.SIGTSTP), uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(was)), sizeOfMask, 0, 0)
	return errno == 0
}
