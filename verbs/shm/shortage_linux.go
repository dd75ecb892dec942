package shm

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// A peer counts as gone only when it is. If this process has no descriptor left for a connection, that is not the
// peer's fault, and may be over soon.

const (
	// shortPause is the time between attempts to get a resource.
	shortPause = 10 * time.Millisecond
	// defaultShortPatience is how long a connection waits for that.
	defaultShortPatience = time.Second
)

// isShortage reports whether the system refused because a resource is short.
func isShortage(err error) bool {
	// EAGAIN is for a socket whose queue of callers is full, ETOOMANYREFS for too many descriptors in flight.
	for _, errno := range [...]unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.EAGAIN, unix.ETOOMANYREFS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// unreached returns an error on the way to the device at address, in terms of devices. Users do not know the sockets of
// this package.
func (p *process) unreached(address string, err error) error {
	var called *net.OpError
	doing := "reaching another process"
	if errors.As(err, &called) {
		doing, err = doing+": "+called.Op, called.Err
	}
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ETOOMANYREFS) {
		err = fmt.Errorf("%w: %s", err, limitReason(err))
	}
	if isShortage(err) {
		return fmt.Errorf("shm: %w: %w", verbs.ErrShortage, err)
	}
	if errors.Is(err, net.ErrClosed) {
		return p.closedError("reaching " + address)
	}
	for _, end := range [...]error{unix.ECONNREFUSED, unix.ECONNRESET, unix.EPIPE, io.EOF} {
		if errors.Is(err, end) {
			return fmt.Errorf("shm: %w: %w", verbs.ErrPeerGone, err)
		}
	}
	return fmt.Errorf("shm: %s: %w", doing, err)
}

// neighborAtLast is neighbor that waits for a time while this process is short of resources.
func (p *process) neighborAtLast(address string) (peer, error) {
	for begun := time.Now(); ; {
		to, err := p.neighbor(address)
		if !errors.Is(err, verbs.ErrShortage) || time.Since(begun) > p.shortPatience {
			return to, err
		}
		select {
		case <-p.ending:
			return nil, p.closedError("reaching " + address)
		case <-time.After(shortPause):
		}
	}
}
