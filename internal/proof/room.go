package proof

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/descriptors"
)

const (
	// share is how long a connection may stay in a full [Room] while others come. Over a
	// link of some tenths of a second that is too little for a proof: who calls over one has
	// to call again when the connection ends before the proof is over.
	share = 250 * time.Millisecond
	// descriptorShare is the part of the process's descriptors that connections in all rooms
	// of the process may take. The others are for those who hold the key, and for the program.
	descriptorShare = 4
	// reserved is how many seats each room has, however full the others are.
	reserved = 8
)

// unproven counts the connections that have a seat in any room of this process.
var unproven atomic.Int64

// A Room holds the connections that have not proved the key, of which any number may
// come. Who holds the key is through at once, so that the oldest connection has to go for
// one that comes, if it has had its share of time. Where there is none a connection that comes
// is closed at once: it is to call again.
type Room struct {
	seats int

	mu sync.Mutex
	// waiting have a seat, the oldest first. entries are those, and of connections that were ended and have not left.
	waiting []*entry
	entries map[io.Closer]*entry
	closed  bool
}

// ErrCrowded: the connection was ended for another after its share of time, or closed at once because there was no seat.
var ErrCrowded = errors.New("proof: too many connections that have not proved the key: they are bounded for each listener, and to a quarter of the process's descriptors")

type entry struct {
	conn  io.Closer
	since time.Time
	// ended is closed when the room has ended the connection.
	ended chan struct{}
}

// NewRoom returns a room for so many connections at once.
func NewRoom(seats int) *Room {
	return &Room{seats: seats, entries: make(map[io.Closer]*entry)}
}

// Enter gives a connection a seat. The room may close the connection from then on until Hear or
// Leave returns. It is false, and the connection closed, if there is no seat, or the room is
// closed.
func (r *Room) Enter(conn io.Closer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.closed || !r.free() && !r.endOldest(now) {
		_ = conn.Close()
		return false
	}
	unproven.Add(1)
	s := &entry{conn, now, make(chan struct{})}
	r.entries[conn], r.waiting = s, append(r.waiting, s)
	return true
}

// free reports whether there is a seat, and a descriptor for who takes it.
func (r *Room) free() bool {
	return len(r.waiting) < min(r.seats, reserved) ||
		len(r.waiting) < r.seats && unproven.Load() < int64(descriptors.Limit())/descriptorShare
}

// MakeRoom ends the oldest connection, if it has had its share of time. Call it where no descriptor is left to accept
// another.
func (r *Room) MakeRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endOldest(time.Now())
}

// endOldest ends the oldest connection, and reports whether there is one that has had its share of time.
func (r *Room) endOldest(now time.Time) bool {
	if len(r.waiting) == 0 || now.Sub(r.waiting[0].since) < share {
		return false
	}
	oldest := r.waiting[0]
	r.release(0)
	close(oldest.ended)
	_ = oldest.conn.Close()
	return true
}

// release gives a seat free.
func (r *Room) release(at int) {
	r.waiting = slices.Delete(r.waiting, at, at+1)
	unproven.Add(-1)
}

// Hear is [Accept] for a connection that has entered, over what over makes of it and
// Hear returns. The connection leaves the room, proven or not. The peer is told that it
// has proved the key only then, so that the room ends nobody who knows.
func (r *Room) Hear(conn io.Closer, over func() (io.ReadWriter, error), key []byte, purpose string) (io.ReadWriter, error) {
	w, err := over()
	if err == nil {
		err = accept(w, key, purpose, func() error { return r.Leave(conn) })
	}
	if crowded := r.Leave(conn); crowded != nil {
		err = fmt.Errorf("%w: %w", crowded, err)
	}
	return w, err
}

// Ended returns a channel that is closed when the room has ended a connection, for who does not
// read from it. It is nil if the connection is not in the room.
func (r *Room) Ended(conn io.Closer) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.entries[conn]; s != nil {
		return s.ended
	}
	return nil
}

// Leave gives the seat of a connection free if it has one, as Hear does. It is ErrCrowded if the room
// has ended the connection for the sake of others.
func (r *Room) Leave(conn io.Closer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.entries[conn]
	if s == nil {
		return nil
	}
	delete(r.entries, conn)
	at := slices.Index(r.waiting, s)
	if at < 0 {
		return ErrCrowded
	}
	r.release(at)
	return nil
}

// Close closes all connections that are in the room, and those that come. It does not
// wait until they have left.
func (r *Room) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for conn := range r.entries {
		_ = conn.Close()
	}
}
