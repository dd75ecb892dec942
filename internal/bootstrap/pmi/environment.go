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

// A process takes the connection that it inherits from its manager once. Later the number in PMI_FD may be a file
// that the program has opened. A variable that is left in the environment would make a child process take itself for
// the same rank.
var inherited struct {
	// number and port are the values of PMI_FD and PMI_PORT when this process started. socket identifies the socket
	// that had that number.
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

// An identity distinguishes a socket from others while it is open.
type identity struct{ device, file uint64 }

// identify returns an error if fd is not a socket.
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

// FromEnvironment connects to the manager that the environment names: by PMI_FD, PMI_RANK and PMI_SIZE, or by Hydra's
// PMI_PORT and PMI_ID. It returns ErrNoManager if the environment names none.
//
// It removes PMI_FD and PMI_PORT from the environment, so that no child process takes itself for the rank. A later call
// returns ErrTaken. It succeeds if the Client of the earlier call was finalized, and the manager serves another job of
// the same ranks on that connection. A [Server] does.
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
	// A number that was inherited by mistake may be any file. Only a socket is written to.
	socket, err := identify(fd)
	if err != nil {
		return nil, fmt.Errorf("%w: PMI_FD=%d is not a connection to a manager: %w", ErrEnvironment, fd, err)
	}
	if text == inherited.number && socket != inherited.socket {
		return nil, fmt.Errorf("%w: PMI_FD=%d is not what it was when this process started: the program has closed the connection to the manager, and the number is another file's now", ErrEnvironment, fd)
	}
	syscall.CloseOnExec(fd)
	// Otherwise the runtime's poller, and with it deadlines, ignores the descriptor.
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

// take records an inherited connection and removes the variable that names it.
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
