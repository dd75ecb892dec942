package shm

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// noPidfd stands for no pidfd.
const noPidfd = -1

// peerPidfd opens the pidfd of the process at the other end of a connection, whose number is pid. It returns noPidfd
// and the reason if there is none: ESRCH if the process has ended.
//
// Linux 6.5 and later give the pidfd of the very process that listens. On older systems, the number may by now belong
// to another process. Then the first process has ended, and so has the connection, because the system closes the files
// of a process before it reuses its number.
func peerPidfd(conn *net.UnixConn, pid int) (int, error) {
	pidfd := noPidfd
	err := control(conn, func(fd int) (err error) {
		if pidfd, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == nil {
			return nil
		}
		if pidfd, err = unix.PidfdOpen(pid, 0); err != nil {
			return fmt.Errorf("pidfd_open: %w", err)
		}
		if connectionEnded(fd) {
			return unix.ESRCH
		}
		return nil
	})
	if err == nil {
		return pidfd, nil
	}
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
	return noPidfd, err
}

// connectionEnded reports whether the other end of a connection has been closed.
func connectionEnded(fd int) bool {
	var one [1]byte
	n, _, err := unix.Recvfrom(fd, one[:], unix.MSG_DONTWAIT|unix.MSG_PEEK)
	return err == nil && n == 0 || err == unix.ECONNRESET
}

// lives returns nil while the neighbor's process lives, according to its pidfd.
func (n *neighbor) lives() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ended.Load():
		return n.gone()
	case n.pidfd == noPidfd:
		return &verbs.CapabilityError{Device: n.process.name, Capability: "reach memory of the program of another process",
			Reason: "the system gives no pidfd, so whose memory it is cannot be told after a process has ended: pidfd_open is of Linux 5.3, and a container's profile of system calls (seccomp) may reject it; use window.Allocate",
			Cause:  n.unwatched}
	}
	for {
		events := []unix.PollFd{{Fd: int32(n.pidfd), Events: unix.POLLIN}}
		switch ready, err := unix.Poll(events, 0); {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("shm: process %d: poll of its pidfd: %w", n.pid, err)
		case ready != 0:
			return fmt.Errorf("shm: process %d: %w", n.pid, verbs.ErrPeerGone)
		default:
			return nil
		}
	}
}

// closePidfd is called with the mutex, or before the neighbor is shared.
func (n *neighbor) closePidfd() {
	if n.pidfd != noPidfd {
		_ = unix.Close(n.pidfd)
		n.pidfd = noPidfd
	}
}
