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

// A Port is one listening socket at which several devices of a process are reached (Options.Port), and whoever
// else listens there. Who calls a device says first which one, in a preamble. A connection that begins with anything
// else is one for Accept.
type Port struct {
	listener net.Listener
	// unproven has the connections that have not said for which device they are, nor proved a key: see Hear.
	unproven *proof.Room
	others   chan net.Conn
	closing  chan struct{}
	sorting  sync.WaitGroup

	mu      sync.Mutex
	devices map[identity]*entrance
	closed  bool
}

const (
	// preamble is what a connection to a device at a Port begins with, before its identity.
	preamble = "RMA tcp port 1\r\n"
	// absent answers a preamble whose device is not at the Port. Neither a proof nor TLS begins
	// with it.
	absent = 0
	// sharedMark ends the address of a device at a Port.
	sharedMark = "/port"
	// sortingLimit bounds the time until a connection has said for whom it is.
	sortingLimit = 5 * time.Second
	// mostArrived bounds the connections of a device that it has not accepted.
	mostArrived = 64
)

// NewPort makes a Port of a listener, which it closes.
func NewPort(listener net.Listener) *Port {
	p := &Port{listener: listener, unproven: proof.NewRoom(maxUnproven), others: make(chan net.Conn), closing: make(chan struct{}), devices: make(map[identity]*entrance)}
	p.sorting.Go(p.sort)
	return p
}

// Addr is the listener's.
func (p *Port) Addr() net.Addr { return p.listener.Addr() }

// Accept gives the next connection that is for no device. It makes the Port a net.Listener. Until Hear has returned, or the
// connection is closed, it is one of a bounded number of those that have proved nothing, and the Port may close it for
// another.
func (p *Port) Accept() (net.Conn, error) {
	select {
	case conn := <-p.others:
		return conn, nil
	case <-p.closing:
		return nil, net.ErrClosed
	}
}

// Close ends listening, also that of the devices: connections that they have stay.
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
			// Out of descriptors, most likely: some may come back.
			p.unproven.MakeRoom()
			select {
			case <-p.closing:
			case <-time.After(10 * time.Millisecond):
			}
		case p.unproven.Enter(conn):
			p.sorting.Go(func() {
				if !p.direct(conn) {
					_ = p.unproven.Leave(conn)
					_ = conn.Close()
				}
			})
		}
	}
}

// direct gives a connection to whom it is for. It has its seat until then, or until it is declined: the seats bound how
// many wait for either.
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

// Hear has the peer of a connection that Accept gave prove a key, as [proof.Room.Hear] does.
func (p *Port) Hear(conn net.Conn, over func() (io.ReadWriter, error), key []byte, purpose string) (io.ReadWriter, error) {
	if begun, ok := conn.(*begunConn); ok {
		conn = begun.Conn
	}
	return p.unproven.Hear(conn, over, key, purpose)
}

// deviceOf returns the device that a preamble asks for, or nil.
func (p *Port) deviceOf(said []byte) *entrance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.devices[identity(said[len(preamble):])]
}

// decline tells a peer that its device is not here. Hung up on without a word, it would call again,
// as a peer does that had to make room.
func (p *Port) decline(conn net.Conn) {
	if conn.SetDeadline(time.Now().Add(sortingLimit)) != nil {
		return
	}
	if _, err := conn.Write([]byte{absent}); err != nil {
		return
	}
	// A socket that is closed with bytes unread takes back what it sent.
	if half, ok := conn.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, maxPayload)
	}
}

// listen reads the preamble and the identity behind it, or what there is in place of them.
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

// A begunConn is a connection of which something was read.
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

// An entrance is a Port as a device has it.
type entrance struct {
	port    *Port
	id      identity
	arrived chan net.Conn
	closing chan struct{}
	once    sync.Once
}

// enter makes a device known.
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

// give has the device accept a connection, if it does not have too many of them.
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

// Close has the device listen no more.
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

// errAbsent ends the calls to a device that is not at its Port.
var errAbsent = errors.New("no such device is at the port")

// A throughConn is a connection through a Port to a device, before the device has said anything.
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

// callThrough says for which device a connection is.
func callThrough(conn io.Writer, id identity) error {
	_, err := conn.Write(append([]byte(preamble), id[:]...))
	return err
}
