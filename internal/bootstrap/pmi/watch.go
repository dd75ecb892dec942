package pmi

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// AwaitLoss returns true when the manager has closed the connection before this rank finalized its job. It returns
// false when this rank finalizes or closes the connection, or the manager sends what no call has requested. AwaitLoss
// reads nothing, so other calls may be made at the same time.
func (c *Client) AwaitLoss() bool {
	conn, ok := c.conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for job := c.begun; c.finalized < job; {
		// A request leaves its deadline on the connection.
		if err := c.conn.SetDeadline(time.Time{}); err != nil {
			return false
		}
		requests := c.requests
		c.mu.Unlock()
		lost, err := awaitInput(raw)
		// A request in progress holds the mutex until it has read its response.
		c.mu.Lock()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
		case err != nil:
			return false
		case lost:
			return c.finalized < job
		case c.requests == requests:
			return false
		}
	}
	return false
}

// awaitInput returns when there is something to read, and reports whether that is the end of the connection.
func awaitInput(raw syscall.RawConn) (end bool, err error) {
	var next [1]byte
	err = raw.Read(func(fd uintptr) (done bool) {
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
			return false
		}
		end = n == 0 || err != nil
		return true
	})
	return end, err
}
