package tcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/onesided/rma/internal/proof"
)

// A Port is one listening socket that several devices of a process share (Options.Port). Other protocols may share it
// too. A peer that calls a device first names the device in a preamble. A connection that begins with anything else is
// returned by Accept.
type Port struct {
	listener net.Listener
	// unproven has the connections that have neither named their device nor proved a key: see Authenticate.
	unproven *proof.Room
	others   chan net.Conn
	closing  chan struct{}
	sorting  sync.WaitGroup

	mu      sync.Mutex
	devices map[identity]*entrance
	closed  bool
}

const (
	// preamble is what a connection to a device at a Port begins with; the identity of the device follows.
	preamble = "RMA tcp port 1\r\n"
	// absent is the response to a preamble whose device is not at the Port. Neither a proof nor TLS begins with it.
	absent = 0
	// sharedMark ends the address of a device at a Port.
	sharedMark = "/port"
	// sortingLimit bounds the time until a connection has named its device.
	sortingLimit = 5 * time.Second
	// mostArrived bounds the connections of a device that it has not accepted.
	mostArrived = 64
)

// NewPort returns a Port over a listener, which the Port closes.
func NewPort(listener net.Listener) *Port {
	p := &Port{listener: listener, unproven: proof.NewRoom(maxUnproven), others: make(chan net.Conn), closing: make(chan struct{}), devices: make(map[identity]*entrance)}
	p.sorting.Go(p.sort)
	return p
}

// Addr returns the listener's address.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Accept returns the next connection that is for no device. It makes the Port a net.Listener. Until Authenticate has
// returned, or the connection is closed, it counts as unproven: the number of such connections is bounded, and the Port
// may close it for another.
func (p *Port) Accept() (net.Conn, error) {
	select {
	case conn := <-p.others:
		return conn, nil
	case <-p.closing:
		return nil, net.ErrClosed
	}
}

// Close stops listening, also for the devices. Existing connections stay.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return net.ErrClosed
	}
	p.closed = true
	close(p.closing)
	p.mu.Unlock()
	err := p.listener.Close()
	p.unproven.Close()
	p.sorting.Wait()
	return err
}

func (p *Port) sort() {
	for {
		conn, err := p.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Most likely the process is out of descriptors, which may become free.
			p.unproven.MakeRoom()
			select {
			case <-p.closing:
			case <-time.After(10 * time.Millisecond):
			}
		case p.unproven.Admit(conn):
			p.sorting.Go(func() {
				if !p.direct(conn) {
					_ = p.unproven.Leave(conn)
					_ = conn.Close()
				}
			})
		}
	}
}

// direct passes a connection to its device or to Accept. The connection keeps its seat until then, or until it is
// declined. So the seats bound how many connections wait for either.
func (p *Port) direct(conn net.Conn) bool {
	said, err := p.listen(conn)
	if err != nil {
		return false
	}
	if bytes.HasPrefix(said, []byte(preamble)) {
		device := p.deviceOf(said)
		if device == nil {
			p.decline(conn)
			return false
		}
		return p.unproven.Leave(conn) == nil && device.give(conn)
	}
	late := time.NewTimer(sortingLimit)
	defer late.Stop()
	select {
	case p.others <- &begunConn{Conn: conn, port: p, said: bytes.NewReader(said)}:
		return true
	case <-p.unproven.Ended(conn):
	case <-late.C:
	case <-p.closing:
	}
	return false
}

// Authenticate has the peer of a connection of Accept prove a key, over the stream that over returns, and returns that
// stream. Both sides name the same purpose. The connection does not count as unproven afterwards.
func (p *Port) Authenticate(conn net.Conn, over func() (io.ReadWriter, error), key []byte, purpose string) (io.ReadWriter, error) {
	if begun, ok := conn.(*begunConn); ok {
		conn = begun.Conn
	}
	return p.unproven.Accept(conn, over, key, purpose)
}

// deviceOf returns the device that a preamble names, or nil.
func (p *Port) deviceOf(said []byte) *entrance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.devices[identity(said[len(preamble):])]
}

// decline tells a peer that its device is not here. If the connection were closed silently, the peer would call again.
func (p *Port) decline(conn net.Conn) {
	if conn.SetDeadline(time.Now().Add(sortingLimit)) != nil {
		return
	}
	if _, err := conn.Write([]byte{absent}); err != nil {
		return
	}
	// Closing a socket with unread bytes discards what it sent.
	if half, ok := conn.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, maxPayload)
	}
}

// listen reads the preamble and the identity after it, or what there is instead.
func (p *Port) listen(conn net.Conn) ([]byte, error) {
	if err := conn.SetDeadline(time.Now().Add(sortingLimit)); err != nil {
		return nil, err
	}
	said := make([]byte, 0, len(preamble)+identitySize)
	for len(said) < cap(said) {
		n, err := conn.Read(said[len(said):cap(said)])
		if said = said[:len(said)+n]; err != nil {
			return nil, err
		}
		if seen := min(len(said), len(preamble)); string(said[:seen]) != preamble[:seen] {
			break
		}
	}
	return said, conn.SetDeadline(time.Time{})
}

// A begunConn is a connection from which something was read.
type begunConn struct {
	net.Conn
	port *Port
	said *bytes.Reader
}

func (c *begunConn) Close() error {
	err := c.Conn.Close()
	_ = c.port.unproven.Leave(c.Conn)
	return err
}

func (c *begunConn) Read(into []byte) (int, error) {
	if c.said.Len() > 0 {
		return c.said.Read(into)
	}
	return c.Conn.Read(into)
}

// An entrance is a device's view of a Port.
type entrance struct {
	port    *Port
	id      identity
	arrived chan net.Conn
	closing chan struct{}
	once    sync.Once
}

// enter registers a device.
func (p *Port) enter(id identity) (*entrance, error) {
	e := &entrance{port: p, id: id, arrived: make(chan net.Conn, mostArrived), closing: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	p.devices[id] = e
	return e, nil
}

// give queues a connection for the device to accept, unless too many wait.
func (e *entrance) give(conn net.Conn) bool {
	e.port.mu.Lock()
	defer e.port.mu.Unlock()
	if e.port.devices[e.id] != e {
		return false
	}
	select {
	case e.arrived <- conn:
		return true
	default:
		return false
	}
}

func (e *entrance) Addr() net.Addr { return e.port.Addr() }

func (e *entrance) Accept() (net.Conn, error) {
	select {
	case conn := <-e.arrived:
		return conn, nil
	case <-e.closing:
		return nil, net.ErrClosed
	}
}

// Close stops listening for the device.
func (e *entrance) Close() error {
	e.once.Do(func() {
		e.port.mu.Lock()
		delete(e.port.devices, e.id)
		e.port.mu.Unlock()
		close(e.closing)
		for {
			select {
			case conn := <-e.arrived:
				_ = conn.Close()
			default:
				return
			}
		}
	})
	return nil
}

// errAbsent is the error of a call to a device that is not at its Port.
var errAbsent = errors.New("no such device is at the port")

// A throughConn is a connection through a Port to a device, before the device has sent anything.
type throughConn struct {
	net.Conn
	heard bool
}

func (c *throughConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 && !c.heard {
		if c.heard = true; into[0] == absent {
			return 0, errAbsent
		}
	}
	return n, err
}

// callThrough names the device that a connection is for.
func callThrough(conn io.Writer, id identity) error {
	_, err := conn.Write(append([]byte(preamble), id[:]...))
	return err
}
