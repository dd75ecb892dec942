package cases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/onesided/rma/internal/loopback"
)

// The raw cases measure the system's sockets, for comparison with a card over TCP. Two processes are started with the
// two ends of one connection over loopback.

// ErrSocketClosed reports that the process at the other end of the socket has ended.
var ErrSocketClosed = errors.New("bench: the other end of the socket is closed")

// A SocketEnd is one end of the socket.
type SocketEnd struct {
	ctx    context.Context
	socket int
	// memory is laid out as the windows and buffers of the cases with the library, whose bytes do not stay in a cache
	// either.
	memory []byte
}

// NewSocketEnd makes an end for cells.
func NewSocketEnd(ctx context.Context, socket int, cells []Cell) *SocketEnd {
	window, buffer := reachOf(cells)
	return &SocketEnd{ctx: ctx, socket: socket, memory: make([]byte, max(window, buffer))}
}

// A SocketStep is one iteration of a raw case on one end. An iteration ends with a message to the end of rank 0,
// so that both are in step.
type SocketStep func(w *SocketEnd, n int) error

// SocketSteps are the steps of a raw case. Origin is that of rank 0, Target that of rank 1.
type SocketSteps struct{ Origin, Target SocketStep }

func pingSocket(w *SocketEnd, n int) error {
	if err := w.send(w.memory[:n]); err != nil {
		return err
	}
	return w.receive(w.memory[:n])
}

func pongSocket(w *SocketEnd, n int) error {
	if err := w.receive(w.memory[:n]); err != nil {
		return err
	}
	return w.send(w.memory[:n])
}

// streamOut sends from the memory from which putMany puts.
func streamOut(w *SocketEnd, n int) error {
	for j := range InFlight {
		from := (j * n) % streamFrom
		if err := w.send(w.memory[from : from+n]); err != nil {
			return err
		}
	}
	return w.receive(w.memory[:1])
}

// streamIn receives into the memory to which putMany puts.
func streamIn(w *SocketEnd, n int) error {
	for j := range InFlight {
		to := (j * n) % streamTo
		if err := w.receive(w.memory[to : to+n]); err != nil {
			return err
		}
	}
	return w.send(w.memory[:1])
}

// pollsBeforeYield is the number of consecutive polls of a socket that is not ready before the process yields and checks the
// context. They take many times as long as an answer of a sender with its own core.
const pollsBeforeYield = 1 << 9

// Touch writes to the memory, so that no page fault occurs in a timed loop.
func (w *SocketEnd) Touch() { clear(w.memory) }

// send returns when the system has taken all of p.
func (w *SocketEnd) send(p []byte) error { return w.all(p, "write", rawWrite) }

// receive fills p.
func (w *SocketEnd) receive(p []byte) error { return w.all(p, "read", rawRead) }

// all moves all of p by a system call. It repeats the call without a pause while the socket is not ready.
func (w *SocketEnd) all(p []byte, name string, call func(socket int, p []byte) (int, syscall.Errno)) error {
	for idle := 1; len(p) > 0; {
		n, errno := call(w.socket, p)
		switch errno {
		case 0:
			if n == 0 {
				return ErrSocketClosed
			}
			p = p[n:]
		case syscall.EAGAIN, syscall.EINTR:
			if idle++; idle%pollsBeforeYield == 0 {
				if w.ctx.Err() != nil {
					return context.Cause(w.ctx)
				}
				yieldProcessor()
			}
		case syscall.EPIPE, syscall.ECONNRESET:
			return ErrSocketClosed
		default:
			return fmt.Errorf("bench: socket: %w", os.NewSyscallError(name, errno))
		}
	}
	return nil
}

// Loop runs f iterations times.
func (w *SocketEnd) Loop(f SocketStep, n, iterations int) error {
	for range iterations {
		if err := f(w, n); err != nil {
			return err
		}
	}
	return nil
}

// ConnectedSockets returns both ends of a new connection.
func ConnectedSockets() (ends [2]*os.File, err error) {
	at, err := loopback.HostPort()
	if err != nil {
		return ends, err
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return ends, err
	}
	defer listener.Close()
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return ends, err
	}
	defer dialed.Close()
	for {
		accepted, err := listener.Accept()
		if err != nil {
			return ends, err
		}
		defer accepted.Close()
		// Any process of this machine may have connected.
		if accepted.RemoteAddr().String() != dialed.LocalAddr().String() {
			continue
		}
		if ends[0], err = dialed.(*net.TCPConn).File(); err != nil {
			return ends, err
		}
		if ends[1], err = accepted.(*net.TCPConn).File(); err != nil {
			return ends, errors.Join(err, ends[0].Close())
		}
		return ends, nil
	}
}
