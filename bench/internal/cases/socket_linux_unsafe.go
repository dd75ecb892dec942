//go:build linux

package cases

import (
	"syscall"
	"unsafe"
)

// SocketsUnable is the reason why raw cases cannot be measured here: there is none.
const SocketsUnable = ""

// rawRead and rawWrite make the system calls only. They do not notify the scheduler, which would cost time.
func rawRead(socket int, p []byte) (int, syscall.Errno) { return raw3(syscall.SYS_READ, socket, p) }

func rawWrite(socket int, p []byte) (int, syscall.Errno) { return raw3(syscall.SYS_WRITE, socket, p) }

// raw3 makes a system call on p, which is not empty. The pointer is converted within the call expression, which keeps
// p's array alive and in place until the call returns. The socket is non-blocking, so the call returns soon.
func raw3(call uintptr, socket int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(call, uintptr(socket), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), errno
}

// yieldProcessor lets another process of this core run.
func yieldProcessor() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// PrepareSocket prepares an inherited descriptor for the cases.
func PrepareSocket(socket int) error {
	if err := syscall.SetNonblock(socket, true); err != nil {
		return err
	}
	return syscall.SetsockoptInt(socket, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
}
