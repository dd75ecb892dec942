//go:build linux

package main

import (
	"syscall"
	"unsafe"
)

// rawUnable is why raw cases cannot be measured here: they can.
const rawUnable = ""

// rawRead and rawWrite are the system calls alone: the scheduler does not hear of
// them, which costs less than they do.
func rawRead(socket int, p []byte) (int, syscall.Errno) { return raw3(syscall.SYS_READ, socket, p) }

func rawWrite(socket int, p []byte) (int, syscall.Errno) { return raw3(syscall.SYS_WRITE, socket, p) }

// raw3 makes a call on p, which is not empty. The pointer is converted within the
// call expression, which keeps p's array alive and in place until the call returns;
// the socket does not block, so that it returns soon.
func raw3(call uintptr, socket int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(call, uintptr(socket), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), errno
}

// yieldProcessor lets another process of this core run.
func yieldProcessor() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }

// prepareSocket makes a descriptor that was inherited ready for the cases.
func prepareSocket(socket int) error {
	if err := syscall.SetNonblock(socket, true); err != nil {
		return err
	}
	return syscall.SetsockoptInt(socket, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
}
