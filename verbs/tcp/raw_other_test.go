//go:build !linux

package tcp_test

import "golang.org/x/sys/unix"

func rawReadOnce(fd int, into []byte) (int, error) { return unix.Read(fd, into) }
