package pmi

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/onesided/rma/internal/errtext"
)

// What a process inherits from its manager it takes once: by the time that anybody asks again, the number in PMI_FD may be a
// file that the program has opened, and a variable still there would have a process that this one starts take itself for
// the same rank.
var inherited struct {
	// number and port are what PMI_FD and PMI_PORT were when this process started, and socket what that number was.
	number, port string
	socket       identity

	mu sync.Mutex
	// client is the connection that was taken.
	client *Client
}

func init() {
	inherited.number, inherited.port = os.Getenv("PMI_FD"), os.Getenv("PMI_PORT")
	if fd, err := strconv.Atoi(inherited.number); err == nil {
		inherited.socket, _ = identify(fd)
	}
}

// identity is what tells a socket from others for as long as it is open.
type identity struct{ device, file uint64 }

// identify fails if a number is not that of a socket.
func identify(fd int) (identity, error) {
	if _, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TYPE); err != nil {
		return identity{}, err
	}
	var status syscall.Stat_t
	if err := syscall.Fstat(fd, &status); err != nil {
		return identity{}, err
	}
	return identity{uint64(status.Dev), status.Ino}, nil
}

// FromEnvironment connects to the manager that the environment names: PMI_FD,
// PMI_RANK and PMI_SIZE, or Hydra's PMI_PORT and PMI_ID. It returns ErrNoManager if the
// environment names none.
//
// It takes PMI_FD and PMI_PORT out of the environment, so that no process that this one starts takes itself for the rank.
// A later call returns ErrTaken, unless the Client of the earlier call was finalized and the manager serves another job of the
// same ranks on the same connection, as [Server] does.
func FromEnvironment() (*Client, error) {
	inherited.mu.Lock()
	defer inherited.mu.Unlock()
	text, port := os.Getenv("PMI_FD"), os.Getenv("PMI_PORT")
	switch c := inherited.client; {
	case c != nil && (text == "" || text == inherited.number) && (port == "" || port == inherited.port):
		return c.again()
	case text == "" && port == "":
		return nil, ErrNoManager
	case text == "":
		c, err := fromPort(port)
		if err != nil {
			return nil, err
		}
		return c.take("PMI_PORT", port == inherited.port)
	}
	fd, err := number("PMI_FD", 0)
	if err != nil {
		return nil, err
	}
	size, err := number("PMI_SIZE", 1)
	if err != nil {
		return nil, err
	}
	rank, err := number("PMI_RANK", 0)
	if err != nil {
		return nil, err
	}
	if rank >= size {
		return nil, fmt.Errorf("%w: PMI_RANK=%d, with PMI_SIZE=%d %s", ErrEnvironment, rank, size, errtext.Allowed(size-1))
	}
	// A number that was inherited by mistake may be any file: nothing is written
	// to what is not a socket.
	socket, err := identify(fd)
	if err != nil {
		return nil, fmt.Errorf("%w: PMI_FD=%d is not a connection to a manager: %w", ErrEnvironment, fd, err)
	}
	if text == inherited.number && socket != inherited.socket {
		return nil, fmt.Errorf("%w: PMI_FD=%d is not what it was when this process started: the program has closed the connection to the manager, and the number is another file's now", ErrEnvironment, fd)
	}
	syscall.CloseOnExec(fd)
	// Without this the runtime's poller, and with it deadlines, leaves the
	// descriptor alone.
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("%w: PMI_FD=%d: %w", ErrEnvironment, fd, err)
	}
	c := newClient(os.NewFile(uintptr(fd), "PMI_FD"), rank, size)
	c.kept = text == inherited.number
	if c, err = c.take("PMI_FD", c.kept); err != nil {
		return nil, err
	}
	return c.begin()
}

// take notes a connection that was inherited, and removes the variable that names it.
func (c *Client) take(variable string, wasInherited bool) (*Client, error) {
	if wasInherited {
		inherited.client = c
	}
	if err := os.Unsetenv(variable); err != nil {
		return nil, errors.Join(fmt.Errorf("pmi: %w", err), c.Close())
	}
	return c, nil
}

// again asks for another job on a connection that has served one.
func (c *Client) again() (*Client, error) {
	c.mu.Lock()
	broken, over := c.broken, c.finalized == c.begun
	if c.kept && over {
		c.begun++
	}
	c.mu.Unlock()
	switch {
	case broken != nil:
		return nil, fmt.Errorf("%w, and failed: %w", ErrTaken, cause{broken})
	case !over:
		return nil, fmt.Errorf("%w, for a job that was not finalized", ErrTaken)
	case !c.kept:
		return nil, fmt.Errorf("%w, and the manager serves one job a process", ErrTaken)
	}
	if err := c.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: the manager begins no further job: %w", ErrTaken, cause{err}), c.Close())
	}
	return c, nil
}
