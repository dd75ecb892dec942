package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/internal/loopback"
)

// The raw cases measure the system's sockets, for comparison with a card over TCP. Two processes are started with the
// two ends of one connection over loopback.

// errOtherEnd reports that the process at the other end of the socket has ended.
var errOtherEnd = errors.New("bench: the other end of the socket is closed")

// A wire is one end of the socket.
type wire struct {
	ctx    context.Context
	socket int
	// memory is laid out as the windows and buffers of the cases with the library, whose bytes do not stay in a cache
	// either.
	memory []byte
}

// newWire makes an end for cells.
func newWire(ctx context.Context, socket int, cells []cell) *wire {
	window, buffer := reachOf(cells)
	return &wire{ctx: ctx, socket: socket, memory: make([]byte, max(window, buffer))}
}

// touch writes to the memory, so that no page fault occurs in a timed loop.
func (w *wire) touch() { clear(w.memory) }

// A wireStep is one iteration of a raw case on one end. An iteration ends with a message to the end that talks, so
// that both are in step.
type wireStep func(w *wire, n int) error

// socketSteps are the steps of a raw case. talk is that of rank 0, answer that of rank 1.
type socketSteps struct{ talk, answer wireStep }

func pingSocket(w *wire, n int) error {
	if err := w.send(w.memory[:n]); err != nil {
		return err
	}
	return w.receive(w.memory[:n])
}

func pongSocket(w *wire, n int) error {
	if err := w.receive(w.memory[:n]); err != nil {
		return err
	}
	return w.send(w.memory[:n])
}

// streamOut sends from the memory from which putMany puts.
func streamOut(w *wire, n int) error {
	for j := range inFlight {
		from := (j * n) % streamFrom
		if err := w.send(w.memory[from : from+n]); err != nil {
			return err
		}
	}
	return w.receive(w.memory[:1])
}

// streamIn receives into the memory to which putMany puts.
func streamIn(w *wire, n int) error {
	for j := range inFlight {
		to := (j * n) % streamTo
		if err := w.receive(w.memory[to : to+n]); err != nil {
			return err
		}
	}
	return w.send(w.memory[:1])
}

// send returns when the system has taken all of p.
func (w *wire) send(p []byte) error { return w.all(p, "write", rawWrite) }

// receive fills p.
func (w *wire) receive(p []byte) error { return w.all(p, "read", rawRead) }

// looks is the number of consecutive polls of a socket that is not ready before the process yields and checks the
// context. They take many times as long as an answer of a sender with its own core.
const looks = 1 << 9

// all moves all of p by a system call. It repeats the call without a pause while the socket is not ready.
func (w *wire) all(p []byte, name string, call func(socket int, p []byte) (int, syscall.Errno)) error {
	for idle := 1; len(p) > 0; {
		n, errno := call(w.socket, p)
		switch errno {
		case 0:
			if n == 0 {
				return errOtherEnd
			}
			p = p[n:]
		case syscall.EAGAIN, syscall.EINTR:
			if idle++; idle%looks == 0 {
				if w.ctx.Err() != nil {
					return context.Cause(w.ctx)
				}
				yieldProcessor()
			}
		case syscall.EPIPE, syscall.ECONNRESET:
			return errOtherEnd
		default:
			return fmt.Errorf("bench: socket: %w", os.NewSyscallError(name, errno))
		}
	}
	return nil
}

// measureSocket times the loops of one cell as rank 0, or answers them as rank 1.
func measureSocket(w *wire, rank int, one cell, repeat, shorten int) (result, error) {
	f := one.c.socket.talk
	if rank == 1 {
		f = one.c.socket.answer
	}
	turns := shortened(one.c.iterations(one.size), shorten)
	values := make([]float64, 0, repeat)
	for range repeat {
		if err := w.loop(f, one.size, turns/10+1); err != nil {
			return result{}, err
		}
		start := time.Now()
		if err := w.loop(f, one.size, turns); err != nil {
			return result{}, err
		}
		values = append(values, one.c.value(time.Since(start).Seconds()/float64(turns), one.size))
	}
	return newResult(one, 2, values), nil
}

func (w *wire) loop(f wireStep, n, turns int) error {
	for range turns {
		if err := f(w, n); err != nil {
			return err
		}
	}
	return nil
}

// socketVariable tells a process that it is an end of a socket, and its rank.
const socketVariable = "RMA_BENCH_SOCKET_RANK"

// atSocket reports whether this process was started for the raw cases.
func atSocket() bool { return os.Getenv(socketVariable) != "" }

// runSocket measures what r requests as one end of the socket, which is descriptor firstFile.
func runSocket(ctx context.Context, o *options, r *request, report func(result) error) error {
	rank, err := strconv.Atoi(os.Getenv(socketVariable))
	if err != nil || rank < 0 || rank > 1 {
		return fmt.Errorf("bench: %s=%q: allowed are 0 and 1, set by bench itself", socketVariable, os.Getenv(socketVariable))
	}
	jobs, err := r.jobs(0)
	if err != nil {
		return err
	}
	if err := prepareSocket(firstFile); err != nil {
		return fmt.Errorf("bench: %s=%d: descriptor %d: %w", socketVariable, rank, firstFile, err)
	}
	return program.WithTimeout(ctx, o.timeout, func(ctx context.Context) error {
		return profiled(o, rank, func() error {
			w := newWire(ctx, firstFile, jobs[0].cells)
			if o.shorten <= 1 {
				w.touch()
			}
			for _, one := range jobs[0].cells {
				r, err := measureSocket(w, rank, one, o.repeat, o.shorten)
				if err != nil {
					return fmt.Errorf("bench: %s of size %d: %w", one.c.name, one.size, err)
				}
				if rank == 0 {
					err = report(r)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// socketLinks gives two processes the ends of a connection over loopback.
func socketLinks() (*links, error) {
	ends, err := connected()
	if err != nil {
		return nil, fmt.Errorf("bench: a connection over loopback: %w", err)
	}
	return &links{
		of: func(rank int) (*os.File, []string, error) {
			return ends[rank], []string{fmt.Sprint(socketVariable, "=", rank)}, nil
		},
		close: func() error {
			for _, end := range ends {
				end.Close() // most are closed: their processes have them
			}
			return nil
		},
	}, nil
}

// connected returns both ends of a new connection.
func connected() (ends [2]*os.File, err error) {
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
