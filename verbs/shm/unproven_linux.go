package shm

import (
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Any process of the user may connect and hold on without a proof. The number of such connections is bounded. Further
// ones wait in the socket's queue until a seat is free: a peer takes the end of its connection for the end of this
// process, so a connection must not be refused for want of a seat. A rank proves the key right after it has connected,
// so it has its seat only for a moment. A connection that says nothing loses its seat after its share of time.

const (
	// maxUnproven is the maximum number of seats.
	maxUnproven = 64
	// descriptorShare is the part of the process's file descriptors, as 1/descriptorShare, that have seats at most.
	descriptorShare = 4
	// unprovenShare is how long a connection may say nothing while another waits for its seat. A rank says nothing
	// for so long only if it is stopped between its connect and its proof. It connects again then.
	unprovenShare = 250 * time.Millisecond
)

type unproven struct {
	conn  *net.UnixConn
	since time.Time
}

// seatsWithin returns the number of seats of a process with this limit of descriptors.
func seatsWithin(limit int) int { return min(maxUnproven, max(1, limit/descriptorShare)) }

// add adds a connection when there is a seat for it. It reports whether the listener is open.
func (l *listener) add(conn *net.UnixConn) bool {
	for {
		wait, added := l.tryAdd(conn)
		if wait == 0 {
			return added
		}
		select {
		case <-l.freed:
		case <-time.After(wait):
		}
	}
}

// tryAdd adds a connection if there is a seat, or one whose connection has had its share. Otherwise it returns after
// what time to try again.
func (l *listener) tryAdd(conn *net.UnixConn) (wait time.Duration, added bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, false
	}
	now := time.Now()
	if len(l.unproven) >= l.seats {
		if wait := l.endOldest(now); wait > 0 {
			return wait, false
		}
	}
	l.open[conn] = struct{}{}
	l.unproven = append(l.unproven, unproven{conn, now})
	return 0, true
}

// endOldest closes the oldest connection that has said nothing for its share of time, and frees its seat. If there is
// none, it returns after what time to look again.
func (l *listener) endOldest(now time.Time) (wait time.Duration) {
	for i, one := range l.unproven {
		if left := unprovenShare - now.Sub(one.since); left > 0 {
			return left
		}
		if !hasSaid(one.conn) {
			l.unproven = slices.Delete(l.unproven, i, i+1)
			_ = one.conn.Close()
			return 0
		}
	}
	// All have said something, and their goroutines are about to read it.
	return shortPause
}

// hasSaid reports whether there is something to read on a connection.
func hasSaid(conn *net.UnixConn) bool {
	said := false
	_ = control(conn, func(fd int) error {
		var one [1]byte
		n, _, err := unix.Recvfrom(fd, one[:], unix.MSG_DONTWAIT|unix.MSG_PEEK)
		said = err == nil && n > 0
		return nil
	})
	return said
}

// proven frees the seat of a connection if it has one.
func (l *listener) proven(conn *net.UnixConn) {
	l.mu.Lock()
	l.unproven = slices.DeleteFunc(l.unproven, func(one unproven) bool { return one.conn == conn })
	l.mu.Unlock()
	l.free()
}

// free has add look for a seat again.
func (l *listener) free() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}
