package proof

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// share is how long a connection may stay in a full [Room] while others wait. Over a
// link of some tenths of a second that is too little for a proof: who calls over one has
// to call again when the connection ends before the proof is over.
const share = 250 * time.Millisecond

// A Room holds the connections that have not proved the key, of which there may be any
// number. Who holds the key is through at once, so that of those who keep others
// waiting the oldest has to go, if it has had its share of time.
type Room struct {
	// seats has an element for each of waiting, and for each that was ended and has not
	// left.
	seats  chan struct{}
	ending chan struct{}

	mu      sync.Mutex
	waiting map[io.Closer]stay
	closed  bool
}

// ErrCrowded: the connection had its share of time, proved nothing, and others waited.
var ErrCrowded = errors.New("proof: nothing was proved while others waited")

type stay struct {
	// since is when it began, or when the connection was ended.
	since time.Time
	ended bool
}

// NewRoom returns a room for so many connections at once.
func NewRoom(seats int) *Room {
	return &Room{seats: make(chan struct{}, seats), ending: make(chan struct{}), waiting: make(map[io.Closer]stay)}
}

// Enter waits until there is room for a connection, which the room may close from then
// on until Hear returns. It is false, and the connection closed, if the room is closed.
func (r *Room) Enter(conn io.Closer) bool {
	for !r.sit(0) && !r.sit(r.hurry()) {
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = conn.Close()
		return false
	}
	r.waiting[conn] = stay{since: time.Now()}
	return true
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

// Leave gives the seat of a connection free if it has one, as Hear does. It is ErrCrowded if the room
// has ended the connection for the sake of others.
func (r *Room) Leave(conn io.Closer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	stay, in := r.waiting[conn]
	if !in {
		return nil
	}
	delete(r.waiting, conn)
	<-r.seats
	if stay.ended {
		return ErrCrowded
	}
	return nil
}

// Close closes all connections that are in the room, and those that come. It does not
// wait until they have left.
func (r *Room) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	close(r.ending)
	for conn := range r.waiting {
		_ = conn.Close()
	}
}

// sit takes a seat if one becomes free within the limit. When the room is closed that
// does not matter any more.
func (r *Room) sit(limit time.Duration) bool {
	if limit == 0 {
		select {
		case r.seats <- struct{}{}:
			return true
		default:
			return false
		}
	}
	select {
	case r.seats <- struct{}{}:
		return true
	case <-r.ending:
		return true
	case <-time.After(limit):
		return false
	}
}

// hurry ends the oldest connection if it has had its share of time, and tells how long
// to wait before the next has.
func (r *Room) hurry() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var oldest io.Closer
	for conn, stay := range r.waiting {
		if oldest == nil || stay.since.Before(r.waiting[oldest].since) {
			oldest = conn
		}
	}
	if oldest == nil {
		return share
	}
	if left := share - now.Sub(r.waiting[oldest].since); left > 0 {
		return left
	}
	_ = oldest.Close()
	// It leaves its seat in a moment. Until then it is not the oldest.
	r.waiting[oldest] = stay{since: now, ended: true}
	return time.Millisecond
}
