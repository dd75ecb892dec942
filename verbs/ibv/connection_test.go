//go:build ibverbs && cgo && linux

package ibv

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// connectionTo is a connection, and the other end of its stream.
func connectionTo(t testing.TB, silence time.Duration) (*connection, net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { require.NoError(t, far.Close()) })
	c := newConnection(near, "peer", silence)
	t.Cleanup(c.end)
	return c, far
}

func TestConnection(t *testing.T) {
	c, far := connectionTo(t, await.Limit)
	other := newConnection(far, "peer", await.Limit)
	go func() {
		other.send(kindAlive, nil)
		other.send(kindReject, []byte("the house is full"))
		other.send(kindAlive, nil)
		other.send(kindReady, nil)
		other.end()
		other.send(kindReady, nil)
	}()
	k, payload, err := c.receive()
	require.NoError(t, err)
	require.Equal(t, kindReject, k)
	require.Equal(t, "the house is full", string(payload))
	k, payload, err = c.receive()
	require.NoError(t, err)
	require.Equal(t, kindReady, k)
	require.Empty(t, payload)
	_, _, err = c.receive()
	require.Error(t, err)
}

// What cannot be a message ends the connection before more of it is read.
func TestConnectionHostile(t *testing.T) {
	for name, bytes := range map[string][]byte{
		"no kind":             {0, 0, 0},
		"an unknown kind":     {byte(kinds), 0, 0},
		"a payload too long":  {byte(kindHello), 2, 1},
		"a sign of life with": {byte(kindAlive), 0, 1},
		"a bye with":          {byte(kindBye), 0, 1},
	} {
		c, far := connectionTo(t, await.Limit)
		go func() { _, _ = far.Write(bytes) }()
		_, _, err := c.receive()
		require.ErrorIs(t, err, ErrProtocol, name)
	}
	c, far := connectionTo(t, await.Limit)
	go func() {
		_, _ = far.Write([]byte{byte(kindReject), 0, 5, 'h', 'a'})
		_ = far.Close()
	}()
	_, _, err := c.receive()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// scripted is a stream whose peer has sent given bytes.
type scripted struct {
	net.Conn
	bytes io.Reader
}

func (s scripted) Read(into []byte) (int, error)  { return s.bytes.Read(into) }
func (scripted) Write(from []byte) (int, error)   { return len(from), nil }
func (scripted) Close() error                     { return nil }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }

// FuzzConnection has a peer that holds the key say anything.
func FuzzConnection(f *testing.F) {
	e := someEndpoint()
	hello := append(e.append(append([]byte{connectionVersion}, make([]byte, identitySize)...)), "hello"...)
	message := func(k kind, payload []byte) []byte { return append([]byte{byte(k), 0, byte(len(payload))}, payload...) }
	f.Add(append(message(kindAlive, nil), message(kindHello, hello)...))
	f.Add(message(kindHello, hello[:len(hello)-8]))
	f.Add(message(kindReject, []byte("the house is full\x00")))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		allocs.AtMost(t, 16<<10+512*len(bytes), func() {
			c := newConnection(scripted{bytes: strings.NewReader(string(bytes))}, "peer", time.Second)
			for k, payload, err := c.receive(); err == nil; k, payload, err = c.receive() {
				_ = (&connectionRequest{connection: c}).parse(k, payload)
			}
		})
		c := newConnection(scripted{bytes: strings.NewReader(string(bytes))}, "peer", time.Second)
		for k, payload, err := c.receive(); err == nil; k, payload, err = c.receive() {
			require.LessOrEqual(t, len(payload), maxPayload)
			r := &connectionRequest{connection: c}
			if r.parse(k, payload) == nil {
				require.LessOrEqual(t, len(r.hello), verbs.MaxHello)
				require.NoError(t, new(endpoint).parse(r.peer.append(nil)))
			}
			if k != kindAccept {
				require.Error(t, (&queuePair{device: &device{}}).takeResponse(c, k, payload))
			}
		}
	})
}

// tcpPair returns both ends of a TCP connection.
func tcpPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near, err = net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	far, err = listener.Accept()
	require.NoError(t, err)
	return near, far
}

// A side that leaves has disconnected, however short its limit of silence is: it does not wait. One whose connection
// just ends is gone, and so is one that is silent.
func TestConnectionLeft(t *testing.T) {
	d := &device{name: "none"}
	for _, test := range []struct {
		end          func(c *connection)
		disconnected bool
	}{
		{(*connection).leave, true},
		{(*connection).end, false},
	} {
		near, far := tcpPair(t)
		c := newConnection(near, "peer", await.Limit)
		test.end(newConnection(far, "peer", time.Nanosecond))
		_, _, err := c.receive()
		err = d.goneError(c.peer, err)
		require.ErrorIs(t, err, verbs.ErrPeerGone)
		require.Equal(t, test.disconnected, errors.Is(err, verbs.ErrDisconnected), "%v", err)
		c.end()
	}
	err := d.goneError("peer", os.ErrDeadlineExceeded)
	require.ErrorIs(t, err, verbs.ErrPeerGone)
	require.NotErrorIs(t, err, verbs.ErrDisconnected)
}

// A message that cannot be sent ends only what this side sends: the peer's bye is read after it.
func TestConnectionSendFails(t *testing.T) {
	near, far := tcpPair(t)
	c := newConnection(near, "peer", await.Limit)
	defer c.end()
	newConnection(far, "peer", await.Limit).leave()
	for err := error(nil); err == nil; {
		_, err = near.Write([]byte{byte(kindAlive), 0, 0})
	}
	c.send(kindReady, nil)
	_, _, err := c.receive()
	require.ErrorIs(t, err, errBye)
}

// A peer that is silent is given up, one that shows signs of life is not.
func TestConnectionSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silence = time.Second
		c, far := connectionTo(t, silence)
		kept := connections{silence: silence, stop: make(chan struct{}), all: make(map[*connection]struct{})}
		other := newConnection(far, "peer", silence)
		require.True(t, kept.add(other))
		go kept.keep()
		begin := time.Now()
		ends, cancel := context.WithTimeout(t.Context(), 10*silence) // expires
		defer cancel()
		context.AfterFunc(ends, func() {
			kept.remove(other)
			other.send(kindReady, nil)
		})
		k, _, err := c.receive()
		require.NoError(t, err)
		require.Equal(t, kindReady, k)
		require.Equal(t, 10*silence, time.Since(begin))
		_, _, err = c.receive()
		require.True(t, os.IsTimeout(err), "%v", err)
		require.Equal(t, 11*silence, time.Since(begin))
		kept.close()
		require.False(t, kept.add(other))
	})
}

// interrupted is a stream on which deadlines end before each byte passes, as many as times.
type interrupted struct {
	net.Conn
	times, left int
	read        io.Reader
	written     []byte
	closed      bool
}

func (i *interrupted) pass() error {
	if i.left--; i.left >= 0 {
		return os.ErrDeadlineExceeded
	}
	i.left = i.times
	return nil
}

func (i *interrupted) Read(into []byte) (int, error) {
	if err := i.pass(); err != nil {
		return 0, err
	}
	return i.read.Read(into[:1])
}

func (i *interrupted) Write(from []byte) (int, error) {
	if err := i.pass(); err != nil {
		return 0, err
	}
	i.written = append(i.written, from[0])
	if len(from) > 1 {
		return 1, os.ErrDeadlineExceeded
	}
	return 1, nil
}

func (i *interrupted) Close() error {
	i.closed = true
	return nil
}

func (*interrupted) SetDeadline(time.Time) error      { return nil }
func (*interrupted) SetReadDeadline(time.Time) error  { return nil }
func (*interrupted) SetWriteDeadline(time.Time) error { return nil }

// A pause of the process, after which a deadline is over, ends no connection: what has arrived meanwhile is read, and
// what is to be sent leaves. A peer that is silent for all deadlines is given up.
func TestConnectionInterrupted(t *testing.T) {
	message := []byte{byte(kindReady), 0, 0}
	for times, ends := range map[int]bool{0: false, 1: false, deadlineSteps / 4: false, deadlineSteps: true} {
		conn := &interrupted{times: times, left: times, read: bytes.NewReader(message)}
		k, _, err := newConnection(conn, "peer", await.Limit).receive()
		if ends {
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		} else {
			require.NoError(t, err, "%d times", times)
			require.Equal(t, kindReady, k)
		}
		conn = &interrupted{times: times, left: times}
		newConnection(conn, "peer", await.Limit).send(kindReady, nil)
		require.Equal(t, !ends, string(conn.written) == string(message), "%d times: %v", times, conn.written)
		require.Equal(t, ends, conn.closed, "%d times", times)
	}
}

func TestParseAddress(t *testing.T) {
	hostPort, id, err := parseAddress("10.0.0.7:123/0123456789abcdef")
	require.NoError(t, err)
	require.Equal(t, "10.0.0.7:123", hostPort)
	require.EqualValues(t, 0x01, id[0])
	for _, address := range []string{"", "/", "10.0.0.7:123", "10.0.0.7/0123456789abcdef", "10.0.0.7:1/0123456789abcde", "10.0.0.7:1/0123456789abcdeg", "10.0.0.7:1/0123456789abcdef0"} {
		_, _, err := parseAddress(address)
		require.ErrorContains(t, err, "an address of this device is host:port/16 hexadecimal digits", address)
	}
}

// A device that listens at all addresses of IPv4 says so, and a call that the network ends names the address once.
func TestConnectionManagerErrors(t *testing.T) {
	err := new(connectionManager).open(&Options{Listen: "0.0.0.0:0", Key: make([]byte, anonymousKeySize)})
	require.ErrorContains(t, err, "Listen is 0.0.0.0:")
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	m := &connectionManager{device: &device{name: "card"}, limit: await.Limit, leaving: leaving, leave: leave}
	for address, want := range map[string]string{
		// Nobody connects to a group of hosts.
		"224.0.0.1:7": "ibv: card: connecting to 224.0.0.1:7: this host has no route to it: connect: network is unreachable",
		"127.0.0.1:0": "ibv: card: connecting to 127.0.0.1:0: verbs: peer is gone: connect: connection refused",
	} {
		_, err := m.call(address+"/0123456789abcdef", new(endpoint), nil)
		require.EqualError(t, err, want)
	}
}
