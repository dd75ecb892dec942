//go:build linux

package tcp

import (
	"io"
	"math"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Go's scheduler is told of none of these calls. Told of one that copies much it would
// have another thread go on, which here takes the processor from the peer, or waits for
// the connection. But while one lasts no collection can begin: so each copies little, a
// write at most callBytes, a read what is missing of a frame and what is read ahead. They
// do not wait for the peer. For memory they do where it maps a file of which the system
// has a page yet to read: then this process waits, as for any page that it touches, and a
// collection with it.

// callBytes leave in about 50 us over loopback. With half as many a tenth of the
// throughput is lost, with four times as many nothing is gained.
const callBytes = 256 << 10

// vector is what the system takes for a list of slices. It is of the heap, and its
// entries keep what they point to alive during the call.
type vector [maxVectors]unix.Iovec

// fill makes the entries for what follows the first skip bytes of slices, at most
// maxVectors of at most most bytes in all, and tells how many there are and of how many
// bytes.
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
	n, bytes := v.fill(into, 0, math.MaxInt)
	done, errno := v.transfer(unix.SYS_READV, fd, n)
	return hasRead(done, errno, bytes)
}

// write makes as many calls as it takes, until one has not all of its bytes taken. An
// error comes with what was taken before: of some the system tells once. To a connection
// that is gone it is an error: Go's runtime ends the process by SIGPIPE for standard
// output and error only.
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

// send is the way of one slice, which is the most frequent. Sound because the system
// reads it within its length before the call returns.
func send(fd int, from []byte) (done uintptr, errno syscall.Errno) {
	for {
		done, _, errno = syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(from))), uintptr(len(from)), unix.MSG_NOSIGNAL, 0, 0)
		if errno != unix.EINTR {
			return done, errno
		}
	}
}
