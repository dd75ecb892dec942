package pmi

import (
	"errors"
	"syscall"
)

// AwaitLoss returns true when the manager has closed the connection, and false when this rank finalizes or closes it. It
// reads nothing: what the manager says is left for the call that asks. Only Finalize, Abort and Close may be called
// meanwhile.
func (c *Client) AwaitLoss() (lost bool) {
	conn, ok := c.conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var next [1]byte
	err = raw.Read(func(fd uintptr) (done bool) {
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK)
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR) {
			return false
		}
		lost = n == 0 || err != nil
		return true
	})
	return lost && err == nil
}
