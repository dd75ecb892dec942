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
	// share is how long a connection may stay in a full [Room] while others arrive. A proof over a link of some tenths
	// of a second takes longer. Its caller has to call again when the connection ends before the proof is over.
	share = 250 * time.Millisecond
	// descriptorShare is the part of the process's file descriptors, as 1/descriptorShare, that connections in all
	// rooms may take. The rest is for peers that hold the key, and for the program.
	descriptorShare = 4
	// reserved is the number of seats that each room has, however full the others are.
	reserved = 8
)

// unproven counts the connections that have a seat in any room of this process.
var unproven atomic.Int64

// A Room holds the connections that have not yet proved the key, of which any number may arrive. A peer that holds the
// key is done at once. So a new connection replaces the oldest one if that has had its share of time. Otherwise the new
// connection is closed at once, and its peer has to call again.
type Room struct {
	seats int

	mu sync.Mutex
	// waiting are the connections with a seat, the oldest first. entries are those, and the ended connections that have
	// not left.
	waiting []*entry
	entries map[io.Closer]*entry
	closed  bool
}

// ErrFull reports that the room had no seat, or gave this connection's seat to another.
var ErrFull = errors.New("proof: too many connections that have not proved the key: they are bounded for each listener, and to a quarter of the process's descriptors")

type entry struct {
	conn  io.Closer
	since time.Time
	// ended is closed when the room has ended the connection.
	ended chan struct{}
}

// NewRoom returns a room for at most seats connections at once.
func NewRoom(seats int) *Room {
	return &Room{seats: seats, entries: make(map[io.Closer]*entry)}
}

// Admit gives a connection a seat. The room may close the connection from then on until Accept or Leave returns. If
// there is no seat, or the room is closed, Admit closes the connection and returns false.
func (r *Room) Admit(conn io.Closer) bool {
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

// free reports whether there is a seat, and a file descriptor for another connection.
func (r *Room) free() bool {
	return len(r.waiting) < min(r.seats, reserved) ||
		len(r.waiting) < r.seats && unproven.Load() < int64(descriptors.Limit())/descriptorShare
}

// MakeRoom ends the oldest connection if it has had its share of time. Call it when no file descriptor is left to
// accept another.
func (r *Room) MakeRoom() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endOldest(time.Now())
}

// endOldest ends the oldest connection if it has had its share of time, and reports whether it did.
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

// release frees a seat.
func (r *Room) release(at int) {
	r.waiting = slices.Delete(r.waiting, at, at+1)
	unproven.Add(-1)
}

// Accept runs the package's Accept on an admitted connection, over the stream that over returns, and returns that
// stream. The connection leaves the room, proven or not. The peer learns only afterwards that it has proved the key, so
// the room never ends a connection whose peer knows that.
func (r *Room) Accept(conn io.Closer, over func() (io.ReadWriter, error), key []byte, purpose string) (io.ReadWriter, error) {
	w, err := over()
	if err == nil {
		err = accept(w, key, purpose, func() error { return r.Leave(conn) })
	}
	if full := r.Leave(conn); full != nil {
		err = fmt.Errorf("%w: %w", full, err)
	}
	return w, err
}

// Ended returns a channel that is closed when the room has ended a connection, for a caller that does not read from the
// connection. It is nil if the connection is not in the room.
func (r *Room) Ended(conn io.Closer) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.entries[conn]; s != nil {
		return s.ended
	}
	return nil
}

// Leave frees the seat of a connection if it has one, as Accept does. It returns ErrFull if the room has ended the
// connection in favor of others.
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
		return ErrFull
	}
	r.release(at)
	return nil
}

// Close closes all connections in the room, and those that arrive later. It does not wait until they have left.
func (r *Room) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for conn := range r.entries {
		_ = conn.Close()
	}
}
