//go:build !linux

package main

import (
	"errors"
	"runtime"
	"syscall"
)

// rawUnable is the reason why raw cases cannot be measured here.
const rawUnable = "raw system calls are made on linux only, this is " + runtime.GOOS

func rawRead(int, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func rawWrite(int, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func yieldProcessor() {}

func prepareSocket(int) error { return errors.New(rawUnable) }
