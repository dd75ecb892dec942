package proof

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var roomKey = make([]byte, MinKey)

// An admitted is a connection in a room, and how it ended.
type admitted struct {
	far      net.Conn
	began    time.Time
	accepted chan struct{}
	after    time.Duration
	err      error
}

// admit makes a room admit and accept a connection.
func admit(t *testing.T, r *Room) *admitted {
	t.Helper()
	near, far := net.Pipe()
	g := &admitted{far: far, accepted: make(chan struct{}), began: time.Now()}
	t.Cleanup(func() { _ = far.Close() })
	require.True(t, r.Admit(near))
	go func() {
		defer close(g.accepted)
		_, g.err = r.Accept(near, func() (io.ReadWriter, error) { return near, nil }, roomKey, "test")
		g.after = time.Since(g.began)
	}()
	return g
}

func (g *admitted) isIn() bool {
	synctest.Wait()
	select {
	case <-g.accepted:
		return false
	default:
		return true
	}
}

// While no other connection arrives, none is ended.
func TestRoomIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		one, two := admit(t, r), admit(t, r)
		time.Sleep(time.Hour) // computes
		require.True(t, one.isIn())
		require.True(t, two.isIn())
	})
}

// isRejected checks that there is no seat for another connection.
func isRejected(t *testing.T, r *Room) {
	t.Helper()
	near, far := net.Pipe()
	require.False(t, r.Admit(near))
	_, err := far.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// A new connection replaces the oldest one when that has had its share of time. Before that the new connection is
// closed at once.
func TestRoomEndsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		one := admit(t, r)
		time.Sleep(share / 2) // computes
		two := admit(t, r)
		isRejected(t, r)
		time.Sleep(share / 2) // computes
		three := admit(t, r)
		require.False(t, one.isIn())
		require.Equal(t, share, one.after)
		require.ErrorIs(t, one.err, ErrFull)
		require.True(t, two.isIn())
		isRejected(t, r)
		time.Sleep(share / 2) // computes
		four := admit(t, r)
		require.False(t, two.isIn())
		require.Equal(t, share, two.after)
		require.True(t, three.isIn())
		require.True(t, four.isIn())
		require.Len(t, r.entries, 2)
	})
}

// A connection that proves the key frees its seat at once, and no other is ended for that.
func TestRoomOfTheProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		one, two := admit(t, r), admit(t, r)
		isRejected(t, r)
		require.NoError(t, Dial(two.far, roomKey, "test"))
		three := admit(t, r)
		require.True(t, one.isIn())
		require.False(t, two.isIn())
		require.NoError(t, two.err)
		require.True(t, three.isIn())
	})
}

// Ended reports the end of a connection to a caller that does not read from it.
func TestRoomTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(1)
		near, _ := net.Pipe()
		require.Nil(t, r.Ended(near))
		require.True(t, r.Admit(near))
		ended := r.Ended(near)
		r.MakeRoom()
		select {
		case <-ended:
			t.Fatal("it was ended before its share of time was over")
		default:
		}
		time.Sleep(share) // computes
		r.MakeRoom()
		<-ended
		require.ErrorIs(t, r.Leave(near), ErrFull)
		require.NoError(t, r.Leave(near))
		r.MakeRoom()
	})
}

// A connection that fails before the proof frees its seat.
func TestRoomOfFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, why := NewRoom(1), errors.New("no TLS")
		for range 3 {
			near, _ := net.Pipe()
			require.True(t, r.Admit(near))
			_, err := r.Accept(near, func() (io.ReadWriter, error) { return nil, why }, roomKey, "test")
			require.Equal(t, why, err)
		}
	})
}

// A peer does not get the confirmation of its proof after the room has ended its connection. Otherwise it would take
// the connection for established.
func TestRoomEndsNobodyWhoKnows(t *testing.T) {
	r := NewRoom(1)
	near, far := net.Pipe()
	defer far.Close()
	require.True(t, r.Admit(near))
	accepted := make(chan error, 1)
	go func() {
		_, err := r.Accept(near, func() (io.ReadWriter, error) { return near, nil }, roomKey, "test")
		accepted <- errors.Join(err, near.Close())
	}()
	err := Dial(&answering{far, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.release(0)
	}}, roomKey, "test")
	require.ErrorIs(t, <-accepted, ErrFull)
	require.True(t, Ended(err), "%v", err)
}

// answering is a connection of a peer that proves the key. It calls before just before its answer.
type answering struct {
	net.Conn
	before func()
}

func (a *answering) Write(b []byte) (int, error) {
	if len(b) == macSize {
		a.before()
	}
	return a.Conn.Write(b)
}

// Close ends the connections in a room, and later ones are closed at once.
func TestRoomCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(2)
		in := admit(t, r)
		r.Close()
		r.Close()
		isRejected(t, r)
		require.False(t, in.isIn())
		require.NotErrorIs(t, in.err, ErrFull)
	})
}
