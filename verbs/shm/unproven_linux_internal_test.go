//go:build linux

package shm

import (
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
)

// dialAtLast connects to the socket of a device as soon as the socket's queue has room.
func dialAtLast(t *testing.T, p *process) *net.UnixConn {
	t.Helper()
	name, ok := socketOf(p.address)
	require.True(t, ok)
	var conn *net.UnixConn
	var err error
	await.True(t, "room in the queue of the socket", func() bool {
		conn, err = net.DialUnix("unixpacket", nil, name)
		return err == nil || !isShortage(err)
	})
	require.NoError(t, err)
	return conn
}

// seated returns the number of connections to a device that have a seat.
func seated(p *process) int {
	p.listener.mu.Lock()
	defer p.listener.mu.Unlock()
	return len(p.listener.unproven)
}

// Connections that prove no key, whatever they have sent, take a bounded number of descriptors and goroutines, and keep
// out no peer that has the key.
func TestStrangersThatHoldOn(t *testing.T) {
	const (
		strangers = 4 * maxUnproven
		// One more may be waiting for a seat, and as many may have been ended just now.
		most = 2*maxUnproven + 10
	)
	holdOn := func(strangers int) {
		far, err := Open(Options{Key: []byte("the key of a job")})
		require.NoError(t, err)
		near, err := Open(Options{Key: []byte("the key of a job")})
		require.NoError(t, err)
		p := far.form.(*process)
		goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
		var held []*net.UnixConn
		for i := range strangers {
			conn := dialAtLast(t, p)
			held = append(held, conn)
			if i%4 == 3 {
				// It fails if the connection has been ended.
				_, _ = conn.Write([]byte("hello"))
			}
			require.LessOrEqual(t, seated(p), maxUnproven)
			require.LessOrEqual(t, runtime.NumGoroutine(), goroutines+most)
			require.LessOrEqual(t, openDescriptors(t)-len(held), descriptors+most)
		}
		_, err = near.Neighbor(far.Address())
		require.NoError(t, err)
		if strangers < maxUnproven {
			await.True(t, "the peer to give up its seat", func() bool { return seated(p) == strangers })
		}
		require.NoError(t, near.Close())
		require.NoError(t, far.Close())
		for _, conn := range held {
			require.NoError(t, conn.Close())
		}
	}
	// One stranger shows that a proof frees a seat. The first devices open what the process keeps.
	holdOn(1)
	goroutines, descriptors := runtime.NumGoroutine(), openDescriptors(t)
	holdOn(strangers)
	settled(t, openDescriptors, descriptors)
	settled(t, func(*testing.T) int { return runtime.NumGoroutine() }, goroutines)
}

// A silent connection keeps its seat until its share of time is over and another connection needs a seat. The oldest
// silent connection goes first. A connection with an unread packet keeps its seat.
func TestSeats(t *testing.T) {
	// Nobody reads from the connections that are added here.
	l := &listener{seats: 3, freed: make(chan struct{}, 1), open: make(map[*net.UnixConn]struct{})}
	socket, address := pretend(t)
	name, _ := socketOf(address)
	var conns []*net.UnixConn
	for range 5 {
		far, err := net.DialUnix("unixpacket", nil, name)
		require.NoError(t, err)
		defer func() { require.NoError(t, far.Close()) }()
		near, err := socket.AcceptUnix()
		require.NoError(t, err)
		if conns = append(conns, near); len(conns) == 1 {
			_, err = far.Write([]byte{sendProof})
			require.NoError(t, err)
		}
	}
	begun := time.Now()
	for _, conn := range conns[:3] {
		require.True(t, l.add(conn))
	}
	require.True(t, l.add(conns[3]))
	require.GreaterOrEqual(t, time.Since(begun), unprovenShare)
	seats := func() (have []*net.UnixConn) {
		for _, one := range l.unproven {
			have = append(have, one.conn)
		}
		return have
	}
	require.Equal(t, []*net.UnixConn{conns[0], conns[2], conns[3]}, seats())
	l.proven(conns[0])
	require.True(t, l.add(conns[4]))
	require.Equal(t, []*net.UnixConn{conns[2], conns[3], conns[4]}, seats())
	for _, conn := range conns {
		l.remove(conn)
	}
	require.Empty(t, l.unproven)
	require.Empty(t, l.open)
}

// A process that has lost its seat before it has sent its proof connects again, but not for ever.
func TestSeatLostBeforeTheProof(t *testing.T) {
	device, err := Open(Options{Key: []byte("the key of a job")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	for _, c := range []struct {
		lost, dials int
		err         error
	}{{0, 1, nil}, {1, 2, nil}, {maxConnects - 1, maxConnects, nil}, {maxConnects, maxConnects, verbs.ErrPeerGone}} {
		t.Run(fmt.Sprint(c.lost), func(t *testing.T) {
			socket, address := pretend(t)
			name, _ := socketOf(address)
			descriptors, dials := openDescriptors(t), 0
			n, err := device.form.(*process).connectBy(address, func() (*net.UnixConn, error) {
				dials++
				near, err := net.DialUnix("unixpacket", nil, name)
				require.NoError(t, err)
				far, err := socket.AcceptUnix()
				require.NoError(t, err)
				if dials <= c.lost {
					require.NoError(t, far.Close())
				} else {
					t.Cleanup(func() { _ = far.Close() })
				}
				return near, nil
			})
			require.Equal(t, c.dials, dials)
			if c.err != nil {
				require.ErrorIs(t, err, c.err)
				require.Equal(t, descriptors, openDescriptors(t))
				return
			}
			require.NoError(t, err)
			n.closePidfd()
			require.NoError(t, n.conn.Close())
		})
	}
}

func TestSeatsWithin(t *testing.T) {
	for limit, want := range map[int]int{1: 1, 4: 1, 29: 7, 255: 63, 256: maxUnproven, 1 << 20: maxUnproven} {
		require.Equal(t, want, seatsWithin(limit), "%d descriptors", limit)
	}
}
