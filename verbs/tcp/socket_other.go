//go:build !linux

package tcp

import "golang.org/x/sys/unix"

// vector has nothing to keep here.
type vector struct{}

func (*vector) read(fd int, into [][]byte) (int, error) {
	for {
		n, err := unix.Readv(fd, into)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

func (*vector) write(fd int, from [][]byte) (int, error) {
	for {
		n, err := unix.Writev(fd, from[:min(len(from), maxVectors)])
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
