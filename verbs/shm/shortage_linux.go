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

// A peer is taken for gone only for what tells so. That this process has no descriptor left
// to reach it with is nothing that the peer did, and may be over soon.

const (
	// shortPause is between attempts to have what there was no room for.
	shortPause = 10 * time.Millisecond
	// defaultShortPatience is how long a connection waits for that.
	defaultShortPatience = time.Second
)

// isShortage reports whether the system refused for want of something.
func isShortage(err error) bool {
	// EAGAIN is for callers of a socket before which too many wait, and ETOOMANYREFS for
	// descriptors of which too many are on their way.
	for _, errno := range [...]unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS, unix.EAGAIN, unix.ETOOMANYREFS} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// unreached says of an error that was met on the way to the device at address whose it is. Sockets of this package are
// nothing that a user knows.
func (p *process) unreached(address string, err error) error {
	var called *net.OpError
	doing := "reaching another process"
	if errors.As(err, &called) {
		doing, err = doing+": "+called.Op, called.Err
	}
	if errors.Is(err, unix.EMFILE) {
		err = fmt.Errorf("%w: %s", err, limitBehind(err))
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

// neighborAtLast is neighbor that waits a while for what this process is short of.
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
