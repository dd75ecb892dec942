//go:build !linux

package tcp

import (
	"io"

	"golang.org/x/sys/unix"
)

// readNow returns 0 bytes if it cannot proceed, and io.EOF at the end of input.

func readNow(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if err != unix.EINTR {
			return hasRead(n, err, len(into))
		}
	}
}

func hasRead(n int, err error, room int) (int, error) {
	switch {
	case err == unix.EAGAIN || room == 0:
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// vector has no state here.
type vector struct{}

func (*vector) read(fd int, into [][]byte) (int, error) {
	for {
		n, err := unix.Readv(fd, into)
		if err != unix.EINTR {
			return hasRead(n, err, len(into))
		}
	}
}

func (*vector) write(fd int, from [][]byte) (int, error) {
	for {
		n, err := unix.Writev(fd, from[:min(len(from), maxVectors)])
		switch err {
		case unix.EINTR:
		case unix.EAGAIN:
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}
