//go:build linux

package tcp

import (
	"io"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Go's scheduler is told of none of these calls: they do not wait, and copy at most
// batchBytes. Told of one that copies much it would have another thread go on, which here
// takes the processor from the peer, or waits for the connection.

// vector is what the system takes for a list of slices. It is of the heap, and its
// entries keep what they point to alive during the call.
type vector [maxVectors]unix.Iovec

// fill makes the entries for the slices that are not empty, at most maxVectors, and
// tells how many there are and of how many bytes.
func (v *vector) fill(slices [][]byte) (n, bytes int) {
	for _, s := range slices {
		if len(s) == 0 {
			continue
		}
		if n == maxVectors {
			break
		}
		v[n].Base = unsafe.SliceData(s)
		v[n].SetLen(len(s))
		n++
		bytes += len(s)
	}
	return n, bytes
}

// Without Go's poller, and on a descriptor that does not block, what cannot be done now
// is 0 bytes. The end of what is read is io.EOF.

// readNow reads into one slice. Sound because the system fills it within its length
// before the call returns.
func readNow(fd int, into []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(into))), uintptr(len(into)), 0, 0, 0)
		if errno != unix.EINTR {
			return hasRead(n, errno, len(into))
		}
	}
}

func hasRead(n uintptr, errno syscall.Errno, room int) (int, error) {
	switch {
	case errno == unix.EAGAIN || room == 0:
		return 0, nil
	case errno != 0:
		return 0, errno
	case n == 0:
		return 0, io.EOF
	}
	return int(n), nil
}

// transfer does readv or writev of all entries. Sound because each is a slice that the
// caller gave, which the system reads or fills within its length before the call
// returns.
func (v *vector) transfer(call uintptr, fd, n int) (done uintptr, errno syscall.Errno) {
	for {
		done, _, errno = syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(v)), uintptr(n))
		if errno != unix.EINTR {
			clear(v[:n])
			return done, errno
		}
	}
}

func (v *vector) read(fd int, into [][]byte) (int, error) {
	n, bytes := v.fill(into)
	done, errno := v.transfer(unix.SYS_READV, fd, n)
	return hasRead(done, errno, bytes)
}

// write takes the way of one slice where there is one, as most often. Sound as
// transfer. To a connection that is gone it is an error: Go's runtime ends the process
// by SIGPIPE for standard output and error only.
func (v *vector) write(fd int, from [][]byte) (int, error) {
	var done uintptr
	var errno syscall.Errno
	if len(from) == 1 {
		for {
			done, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(from[0]))), uintptr(len(from[0])), unix.MSG_NOSIGNAL, 0, 0)
			if errno != unix.EINTR {
				break
			}
		}
	} else {
		n, _ := v.fill(from)
		done, errno = v.transfer(unix.SYS_WRITEV, fd, n)
	}
	switch errno {
	case 0:
		return int(done), nil
	case unix.EAGAIN:
		return 0, nil
	}
	return 0, errno
}
