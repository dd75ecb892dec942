//go:build !linux

package cases

import (
	"errors"
	"runtime"
	"syscall"
)

// SocketsUnable is the reason why raw cases cannot be measured here.
const SocketsUnable = "raw system calls are made on linux only, this is " + runtime.GOOS

func rawRead(int, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func rawWrite(int, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func yieldProcessor() {}

// PrepareSocket returns an error.
func PrepareSocket(int) error { return errors.New(SocketsUnable) }
