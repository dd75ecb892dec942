//go:build linux

package tcp

import (
	"io"
	"math"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls bypass Go's scheduler. For a call that copies much, the scheduler would start another thread, which takes
// the processor from the peer. But no garbage collection can begin during such a call. So each call copies little: a
// write at most callBytes, a read the rest of a frame and the look-ahead. The calls do not wait for the peer. They do
// wait for a page fault of a mapped file; then this process and a collection wait, as at any access to that page.

// callBytes leave in about 50 us over loopback. Half as many lose a tenth of the throughput; four times as many gain
// nothing.
const callBytes = 256 << 10

// vector is the system's list of slices. It is on the heap, and its entries keep what they point to alive during the
// call.
type vector [maxVectors]unix.Iovec

// fill makes the entries for what follows the first skip bytes of slices: at most maxVectors entries of at most most
// bytes in all. It returns the numbers of entries and of bytes.
func (v *vector) fill(slices [][]byte, skip, most int) (n, bytes int) {
	for _, s := range slices {
		if skip >= len(s) {
			skip -= len(s)
			continue
		}
		if n == maxVectors || bytes == most {
			break
		}
		s = s[skip:]
		skip = 0
		s = s[:min(len(s), most-bytes)]
		v[n].Base = unsafe.SliceData(s)
		v[n].SetLen(len(s))
		n++
		bytes += len(s)
	}
	return n, bytes
}

// The descriptor does not block and is not in Go's poller. A call that cannot proceed returns 0 bytes. The end of input
// is io.EOF.

// readNow reads into one slice. It is sound because the system fills the slice within its length before the call
// returns.
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

// transfer does readv or writev of all entries. It is sound because each is a slice of the caller, which the system
// reads or fills within its length before the call returns.
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
	n, bytes := v.fill(into, 0, math.MaxInt)
	done, errno := v.transfer(unix.SYS_READV, fd, n)
	return hasRead(done, errno, bytes)
}

// write makes calls until one does not take all of its bytes. An error comes with the number of bytes taken before it,
// because the system reports some errors only once. Writing to a closed connection is an error: Go's runtime ends the
// process by SIGPIPE only for standard output and error.
func (v *vector) write(fd int, from [][]byte) (total int, err error) {
	for {
		var done uintptr
		var errno syscall.Errno
		var bytes int
		if len(from) == 1 {
			part := from[0][total:]
			bytes = min(len(part), callBytes)
			done, errno = send(fd, part[:bytes])
		} else {
			var n int
			n, bytes = v.fill(from, total, callBytes)
			done, errno = v.transfer(unix.SYS_WRITEV, fd, n)
		}
		switch errno {
		case 0:
			total += int(done)
		case unix.EAGAIN:
			return total, nil
		default:
			return total, errno
		}
		if bytes < callBytes || int(done) < bytes {
			return total, nil
		}
	}
}

// send writes one slice, the most frequent case. It is sound because the system reads the slice within its length
// before the call returns.
func send(fd int, from []byte) (done uintptr, errno syscall.Errno) {
	for {
		done, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(from))), uintptr(len(from)), unix.MSG_NOSIGNAL, 0, 0)
		if errno != unix.EINTR {
			return done, errno
		}
	}
}
