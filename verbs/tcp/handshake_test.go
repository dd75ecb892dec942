package tcp

import (
	"cmp"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
	"github.com/onesided/rma/verbs"
)

// patience is how long a test waits before it says that a thing does not come.
const patience = await.Limit

// openWith opens a device. Where the options do not say so, it gives nobody up.
func openWith(t testing.TB, options Options) *device {
	t.Helper()
	options.Silence = cmp.Or(options.Silence, time.Hour)
	options.HandshakeLimit = cmp.Or(options.HandshakeLimit, patience)
	opened, err := Open(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, opened.Close()) })
	return opened.(*device)
}

// connect starts a connection from one device to an address.
func connect(t testing.TB, d *device, address string) *queuePair {
	t.Helper()
	q, err := d.Connect(address, []byte("hello"), queues(t, d))
	require.NoError(t, err)
	return q.(*queuePair)
}

func queues(t testing.TB, d *device) verbs.QueuePairConfig {
	t.Helper()
	cq, err := d.CreateCompletionQueue(64)
	require.NoError(t, err)
	return verbs.QueuePairConfig{SendQueue: cq, ReceiveQueue: cq}
}

// pollUntil sleeps and polls devices until done says so.
func pollUntil(t testing.TB, what string, done func() bool, devices ...*device) {
	t.Helper()
	end := time.Now().Add(patience)
	channel := &devices[0].channel
	for {
		ticket := channel.Prepare()
		for _, d := range devices {
			d.drive()
		}
		came := done()
		if !came {
			channel.Sleep(ticket, time.Millisecond)
		}
		channel.Finish()
		if came {
			return
		}
		require.True(t, time.Now().Before(end), "%s did not come", what)
	}
}

// failure waits for a queue pair to fail, and returns why.
func failure(t testing.TB, q *queuePair, beside ...*device) error {
	t.Helper()
	pollUntil(t, "the failure", func() bool { return q.State() == verbs.StateError }, append([]*device{q.device}, beside...)...)
	return q.Err()
}

// expectAnswersWithin changes how long a device lets a connection be made.
func (d *device) expectAnswersWithin(limit time.Duration) {
	d.connectionManager.mu.Lock()
	defer d.connectionManager.mu.Unlock()
	d.connectionManager.limit = limit
}

// join connects two devices.
func join(t testing.TB, near, far *device) (p, q *queuePair) {
	t.Helper()
	p = connect(t, near, far.Address())
	return p, accept(t, p, far)
}

// accept accepts the connection that p has started, when it has come to a device, and
// gives that device's end of it.
func accept(t testing.TB, p *queuePair, far *device) *queuePair {
	t.Helper()
	var requests [1]verbs.ConnectionRequest
	pollUntil(t, "the request", func() bool {
		require.NoError(t, p.Err())
		return far.PollConnections(requests[:]) == 1
	}, far, p.device)
	accepted, err := requests[0].Accept(queues(t, far))
	require.NoError(t, err)
	pollUntil(t, "the acceptance", func() bool { return p.State() != verbs.StateConnecting }, p.device, far)
	require.NoError(t, p.Err())
	return accepted.(*queuePair)
}

// logs collects what a device logs.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), part)
}

func (l *logs) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		text    string
	}{
		{"no key where others connect", Options{Listen: "0.0.0.0:0", Advertise: "10.0.0.1"}, "Key is empty; set Key, or listen on a loopback address"},
		{"no name", Options{Listen: "0.0.0.0:0", Key: make([]byte, 32)}, "names no host that peers could connect to; set Advertise"},
		{"a name with a space", Options{Advertise: "a b"}, `Advertise is "a b"`},
		{"a name that is too long", Options{Advertise: strings.Repeat("a", 300)}, "must be a host"},
		{"a port that is none", Options{Listen: "127.0.0.1:99999"}, "invalid port"},
		{"a host that is not this one", Options{Listen: "192.0.2.1:0", Key: make([]byte, 32)}, "192.0.2.1"},
		{"a silence that is too short", Options{Silence: time.Millisecond}, "Silence is 1ms, allowed are 50ms or more"},
		{"a negative limit", Options{HandshakeLimit: -1}, "HandshakeLimit is -1ns, allowed are 50ms or more"},
		{"a key that is too short", Options{Key: []byte("short")}, "5 bytes, allowed are 16 to 512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			device, err := Open(c.options)
			if err == nil {
				_ = device.Close()
			}
			require.ErrorContains(t, err, c.text)
			require.True(t, strings.HasPrefix(err.Error(), "tcp: "), err.Error())
		})
	}
}

func TestAdvertise(t *testing.T) {
	key := proof.NewKey()
	for _, advertised := range []string{"::1", "[::1]", "[::1]:7"} {
		d := openWith(t, Options{Advertise: advertised, Key: key})
		require.True(t, strings.HasPrefix(d.Address(), "[::1]:"), d.Address())
	}
	d := openWith(t, Options{Listen: "0.0.0.0:0", Advertise: "localhost", Key: key})
	require.True(t, strings.HasPrefix(d.Address(), "localhost:"), d.Address())
	join(t, openWith(t, Options{Key: key}), d)
	d = openWith(t, Options{Advertise: "example.org:77"})
	require.True(t, strings.HasPrefix(d.Address(), "example.org:77/"), d.Address())
}

func TestKeys(t *testing.T) {
	one, other := proof.NewKey(), proof.NewKey()
	for _, c := range []struct {
		name           string
		dials, accepts []byte
	}{{"another", one, other}, {"none to one", nil, other}, {"one to none", one, nil}} {
		t.Run(c.name, func(t *testing.T) {
			var said logs
			near, far := openWith(t, Options{Key: c.dials}), openWith(t, Options{Key: c.accepts, Logger: said.logger()})
			err := failure(t, connect(t, near, far.Address()), far)
			require.ErrorIs(t, err, verbs.ErrRejected)
			require.ErrorIs(t, err, proof.ErrKey)
			pollUntil(t, "the log", func() bool { return said.has("connection rejected") && said.has("another key") }, far)
			require.Zero(t, far.PollConnections(make([]verbs.ConnectionRequest, 1)))
			// Who has the key is served as before.
			join(t, openWith(t, Options{Key: c.accepts}), far)
		})
	}
}

// A device that listens where another did is not taken for it.
func TestAddressOfAnother(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	hostPort, _, _ := strings.Cut(far.Address(), "/")
	err := failure(t, connect(t, near, hostPort+"/0123456789abcdef"), far)
	require.ErrorIs(t, err, verbs.ErrRejected)
	require.ErrorContains(t, err, "another device is at this address now")
}

// Who accepts and says nothing keeps nobody longer than the limit.
func TestPeerThatNeverAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near := openWith(t, Options{HandshakeLimit: minLimit})
	err = failure(t, connect(t, near, listener.Addr().String()+"/0123456789abcdef"))
	require.ErrorIs(t, err, verbs.ErrPeerGone)
	require.ErrorContains(t, err, "the peer did not respond within 50ms")
}

// What a stranger says is read no further than the proof, and ends his connection only.
func TestStrangers(t *testing.T) {
	for name, says := range map[string]string{
		"nothing":        "",
		"HTTP":           "GET / HTTP/1.1\r\nHost: " + strings.Repeat("x", 100) + "\r\n\r\n",
		"a frame":        string(message(frame{kind: kindHello}, strings.Repeat("\x00", identitySize))),
		"a proof begun":  "RMAproof\x00\x02" + strings.Repeat("n", 32),
		"a proof's half": "RMAproof\x00\x02",
		"a flood":        strings.Repeat("\xff", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			far := openWith(t, Options{HandshakeLimit: minLimit})
			hostPort, _, _ := strings.Cut(far.Address(), "/")
			conn, err := net.Dial("tcp", hostPort)
			require.NoError(t, err)
			defer conn.Close()
			_, _ = conn.Write([]byte(says))
			require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
			_, err = io.Copy(io.Discard, conn)
			require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection is still open")
			far.expectAnswersWithin(patience)
			join(t, openWith(t, Options{}), far)
		})
	}
}

// Any number of connections that prove nothing keep out nobody who does.
func TestManyStrangers(t *testing.T) {
	far := openWith(t, Options{HandshakeLimit: time.Hour})
	hostPort, _, _ := strings.Cut(far.Address(), "/")
	for range maxUnproven + 20 {
		conn, err := net.Dial("tcp", hostPort)
		require.NoError(t, err)
		defer conn.Close()
	}
	join(t, openWith(t, Options{}), far)
	far.connectionManager.mu.Lock()
	defer far.connectionManager.mu.Unlock()
	require.LessOrEqual(t, len(far.connectionManager.accepting), maxUnproven)
}

// More peers at once than may be unproven all come through.
func TestManyPeersAtOnce(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	var pairs []*queuePair
	for range 2 * maxUnproven {
		pairs = append(pairs, connect(t, near, far.Address()))
	}
	config := queues(t, far)
	pollUntil(t, "the last acceptance", func() bool {
		var requests [8]verbs.ConnectionRequest
		for _, r := range requests[:far.PollConnections(requests[:])] {
			_, err := r.Accept(config)
			require.NoError(t, err)
		}
		for _, q := range pairs {
			require.NoError(t, q.Err())
			if q.State() != verbs.StateReady {
				return false
			}
		}
		return true
	}, far, near)
}

// A request to connect is answered once, and only while its maker wants it.
func TestAnswers(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	ask := func() (*queuePair, verbs.ConnectionRequest) {
		p := connect(t, near, far.Address())
		var requests [1]verbs.ConnectionRequest
		pollUntil(t, "the request", func() bool { return far.PollConnections(requests[:]) == 1 }, far, near)
		return p, requests[0]
	}
	p, request := ask()
	_, err := request.Accept(verbs.QueuePairConfig{})
	require.Error(t, err, "Accept without queues")
	_, err = request.Accept(queues(t, far))
	require.NoError(t, err, "Accept after one that could not be")
	_, err = request.Accept(queues(t, far))
	require.ErrorContains(t, err, "accepted before")
	request.Reject("too late")
	pollUntil(t, "the acceptance", func() bool { return p.State() == verbs.StateReady }, near, far)

	p, request = ask()
	request.Reject(strings.Repeat("no \x00", maxReason))
	_, err = request.Accept(queues(t, far))
	require.ErrorIs(t, err, verbs.ErrPeerGone)
	err = failure(t, p, far)
	require.ErrorIs(t, err, verbs.ErrRejected)
	require.ErrorContains(t, err, `no \x00no`)

	p, request = ask()
	require.NoError(t, p.Close())
	pollUntil(t, "the end", func() bool {
		c := request.(*connectionRequest).conn
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.phase == phaseClosed
	}, far, near)
	_, err = request.Accept(queues(t, far))
	require.ErrorIs(t, err, verbs.ErrPeerGone)
	require.NoError(t, far.Close())
	_, err = request.Accept(queues(t, near))
	require.ErrorIs(t, err, verbs.ErrClosed)
}

// A hello that is none ends its connection, and the peer gets the reason.
func TestHellos(t *testing.T) {
	padded := ofVersion(version, kindHello, "12345678")
	padded[paddedSize-1] = 1
	for name, c := range map[string]struct {
		says  []byte
		text  string
		reply string
	}{
		"another frame": {message(frame{kind: kindPing}, ""), "ping frame of 0 bytes in place of a hello", "ping frame of 0 bytes in place of a hello"},
		"no identity":   {message(frame{kind: kindHello}, "1234567"), "hello frame of 7 bytes", "hello frame of 7 bytes in place of a hello"},
		"too long":      {message(frame{kind: kindHello}, strings.Repeat("x", maxHelloPayload+1)), "a payload of 205 bytes", "hello frame with a payload of 205 bytes, at most 204 are allowed"},
		"padding":       {padded, "hello frame whose padding is not zero", "hello frame whose padding is not zero"},
		"version 1":     {ofVersion(1, kindHello, "12345678"), "version 1, this side speaks 2", "it speaks version 2 of the frames, this side version 1"},
		"version 3":     {ofVersion(3, kindHello, "12345678"), "version 3, this side speaks 2", "it speaks version 2 of the frames, this side version 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var said logs
			far := openWith(t, Options{Logger: said.logger()})
			hostPort, _, _ := strings.Cut(far.Address(), "/")
			conn, err := net.Dial("tcp", hostPort)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, proof.Dial(conn, make([]byte, anonymousKeySize), purpose))
			_, err = conn.Write(c.says)
			require.NoError(t, err)
			answer, err := io.ReadAll(conn)
			require.NoError(t, err)
			require.Equal(t, string(ofVersion(version, kindReject, c.reply)), string(answer))
			require.NoError(t, conn.Close())
			pollUntil(t, "the log", func() bool { return said.has(c.text) }, far)
			require.Zero(t, far.PollConnections(make([]verbs.ConnectionRequest, 1)))
		})
	}
}

// ofVersion is a hello or a reject of any version.
func ofVersion(version byte, k kind, payload string) []byte {
	return append(append([]byte{version, byte(k), 0, 0, byte(len(payload))}, make([]byte, 43)...), payload...)
}

// A peer of version 1 reads 48 bytes of a hello, and sends as many and the reason why it rejects it.
func TestPeerOfVersion1(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	near := openWith(t, Options{})
	p, err := near.Connect(listener.Addr().String()+"/0123456789abcdef", nil, queues(t, near))
	require.NoError(t, err)
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, proof.Accept(conn, make([]byte, anonymousKeySize), purpose))
	hello := make([]byte, 48)
	_, err = io.ReadFull(conn, hello)
	require.NoError(t, err)
	require.Equal(t, []byte{version, byte(kindHello)}, hello[:2])
	_, err = conn.Write(ofVersion(1, kindReject, "it speaks version 1 of the frames, this side version 2"))
	require.NoError(t, err)
	err = failure(t, p.(*queuePair))
	require.ErrorIs(t, err, ErrProtocol)
	require.ErrorContains(t, err, "a frame of version 1, this side speaks 2")
}

// A peer that holds the key, plays by the handshake, and then breaks the protocol or
// the connection.
func TestPeerThatBreaks(t *testing.T) {
	for _, c := range []struct {
		name string
		says []byte
		end  func(conn *net.TCPConn)
		is   error
		text string
	}{
		{"hangs up", nil, func(conn *net.TCPConn) { _ = conn.Close() }, verbs.ErrPeerGone, "the connection ended"},
		{"resets", nil, func(conn *net.TCPConn) { _ = conn.SetLinger(0); _ = conn.Close() }, verbs.ErrPeerGone, "reset"},
		{"hangs up in a frame", message(frame{kind: kindPing}, "")[:10], func(conn *net.TCPConn) { _ = conn.Close() }, verbs.ErrPeerGone, "the connection ended"},
		{"says goodbye", message(frame{kind: kindBye}, ""), func(*net.TCPConn) {}, verbs.ErrPeerGone, "the peer's queue pair failed"},
		{"talks nonsense", []byte(strings.Repeat("?", 100)), func(*net.TCPConn) {}, ErrProtocol, "version 63"},
	} {
		t.Run(c.name, func(t *testing.T) {
			far := openWith(t, Options{})
			_, untouched := join(t, openWith(t, Options{}), far)
			hostPort, _, _ := strings.Cut(far.Address(), "/")
			conn, err := net.Dial("tcp", hostPort)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, proof.Dial(conn, make([]byte, anonymousKeySize), purpose))
			_, err = conn.Write(message(frame{kind: kindHello}, string(far.id[:])+"hi"))
			require.NoError(t, err)
			var requests [1]verbs.ConnectionRequest
			pollUntil(t, "the request", func() bool { return far.PollConnections(requests[:]) == 1 }, far)
			require.Equal(t, "hi", string(requests[0].Hello()))
			accepted, err := requests[0].Accept(queues(t, far))
			require.NoError(t, err)
			_, err = io.ReadFull(conn, make([]byte, commonSize))
			require.NoError(t, err)
			_, err = conn.Write(c.says)
			require.NoError(t, err)
			c.end(conn.(*net.TCPConn))
			err = failure(t, accepted.(*queuePair))
			require.ErrorIs(t, err, c.is)
			require.NotErrorIs(t, err, verbs.ErrDisconnected)
			require.ErrorContains(t, err, c.text)
			require.Equal(t, verbs.StateReady, untouched.State())
		})
	}
}

// TestNothingIsLeft makes and loses connections in all ways, many times.
func TestNothingIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the descriptors of a process can be counted where there is /proc/self/fd, on Linux")
	}
	once := func() {
		var devices []*device
		for range 3 {
			opened, err := Open(Options{})
			require.NoError(t, err)
			devices = append(devices, opened.(*device))
		}
		near, far, third := devices[0], devices[1], devices[2]
		p, q := join(t, near, far)
		join(t, far, near)
		join(t, third, far)
		connect(t, near, far.Address())
		refused := connect(t, near, "127.0.0.1:1/0123456789abcdef")
		_ = failure(t, refused)
		require.NoError(t, p.Close())
		_ = failure(t, q, near)
		for _, d := range devices {
			require.NoError(t, d.Close())
		}
	}
	count := func() (int, int) {
		files, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(files), runtime.NumGoroutine()
	}
	once()
	files, goroutines := count()
	for range 20 {
		once()
	}
	// A goroutine that has ended may be counted a moment longer.
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		f, g := count()
		if f <= files && g <= goroutines {
			break
		}
		require.True(t, time.Now().Before(end), "%d descriptors and %d goroutines became %d and %d", files, goroutines, f, g)
	}
}
