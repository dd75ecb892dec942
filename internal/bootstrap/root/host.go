package root

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
)

// maxUnproven bounds the connections that have not proved the key. When others wait
// the oldest of them has to go.
const maxUnproven = 128

type phase int

const (
	// forming: ranks come, and those who end give their number back.
	forming phase = iota
	// begun: all are there, and each connection belongs to the PMI-1 server.
	begun
	// disagreed: ranks that hold the key are not of one job, so that all of it will
	// never be there. Those who come are told so.
	disagreed
	// over: the root has given up or is closed.
	over
)

// A host is the root's side of a job, in rank 0.
//
// A connection has one goroutine at a time: that of welcome, until the verdict, then
// the server's. A rank that waits for the verdict has nothing to say, so welcome reads
// to see whether it ends; a read deadline in the past calls it away from that when the
// phase changes.
type host struct {
	settings *Settings
	size     int
	// job is a number of this job alone, not 0. The ranks hear it when the job begins.
	job      uint64
	listener net.Listener
	server   *pmi.Server
	running  sync.WaitGroup
	// unproven has the connections that have not proved the key.
	unproven *proof.Room
	// complete is closed when the phase becomes begun, broken when it becomes disagreed,
	// closing when it becomes over.
	complete, broken, closing chan struct{}
	// allTold is closed when all ranks know of the disagreement.
	allTold chan struct{}
	// left is closed when no rank but 0 has a connection any more, after begun.
	left chan struct{}

	mu    sync.Mutex
	phase phase
	// open are connections that welcome has, each with what carries it. To close that
	// never waits; TLS would say goodbye first.
	open map[net.Conn]net.Conn
	// seats are the connections of the ranks that claimed theirs; rank 0 has none.
	seats map[int]net.Conn
	// farewell is for those who wait in their seats when the phase becomes disagreed or
	// over, and for those who come while it is disagreed.
	farewell verdict
	// told are the ranks that know of the disagreement.
	told     map[uint32]bool
	refusals refusals
}

// lead joins as rank 0.
func lead(ctx context.Context, s *Settings) (*pmi.Client, *host, error) {
	listener, err := listen(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	h := newHost(s, listener)
	if err := h.form(ctx); err != nil {
		h.close()
		return nil, nil, err
	}
	client, err := h.own()
	if err != nil {
		h.close()
		return nil, nil, err
	}
	return client, h, nil
}

func newHost(s *Settings, listener net.Listener) *host {
	h := &host{settings: s, size: s.Size, job: 1 + rand.Uint64N(math.MaxUint64), listener: listener, server: pmi.NewServer(s.Size, pmi.Events{}),
		unproven: proof.NewRoom(maxUnproven),
		complete: make(chan struct{}), broken: make(chan struct{}), closing: make(chan struct{}), allTold: make(chan struct{}), left: make(chan struct{}),
		open: make(map[net.Conn]net.Conn), seats: make(map[int]net.Conn), told: make(map[uint32]bool)}
	h.mu.Lock()
	h.beginIfComplete()
	h.mu.Unlock()
	h.running.Go(h.accept)
	return h
}

// own is rank 0's own connection to the server.
func (h *host) own() (*pmi.Client, error) {
	file, _, err := h.server.Child(0, 0)
	if err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	client, err := pmi.New(conn, 0, h.size)
	if err != nil {
		return nil, fmt.Errorf("root: %w", err)
	}
	return client, nil
}

// beginIfComplete is called with the mutex.
func (h *host) beginIfComplete() {
	if len(h.seats) < h.size-1 {
		return
	}
	h.phase = begun
	close(h.complete)
	if h.size == 1 {
		close(h.left)
	}
	h.callAway()
}

// callAway interrupts those who wait in their seats. It is called with the mutex.
func (h *host) callAway() {
	for _, conn := range h.seats {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// hasLeft notes that a rank's connection to the server has ended.
func (h *host) hasLeft(rank int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seats, rank)
	if len(h.seats) == 0 {
		close(h.left)
	}
}

// served is a connection whose end the host wants to know.
type served struct {
	net.Conn
	ended func()
}

func (c *served) Close() error {
	defer c.ended()
	return c.Conn.Close()
}

// end makes the phase over and says why to those who wait in their seats. It is called
// with the mutex.
func (h *host) end(why string) {
	if h.phase == over {
		return
	}
	if h.phase != disagreed {
		h.farewell = verdict{outcome: incomplete, text: why}
	}
	if h.phase == forming {
		h.callAway()
	}
	h.phase = over
	close(h.closing)
	_ = h.listener.Close()
	h.unproven.Close()
	seated := make(map[net.Conn]bool, len(h.seats))
	for _, conn := range h.seats {
		seated[conn] = true
	}
	for conn, carrier := range h.open {
		if !seated[conn] {
			_ = carrier.Close()
		}
	}
}

// finish closes the host when all ranks have left, or after patience. When ctx ends before that the host serves on.
func (h *host) finish(ctx context.Context, patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	late := false
	select {
	case <-h.left:
	case <-h.closing:
	case <-timer.C:
		late = true
	case <-ctx.Done():
		if ranks := h.unfinished(); len(ranks) > 0 {
			return fmt.Errorf("root: %w: rank %d has not finalized", errtext.Ended(ctx), ranks[0])
		}
	}
	defer h.close()
	if ranks := h.unfinished(); late && len(ranks) > 0 {
		return fmt.Errorf("%w: %v after rank 0 did, %s had not", ErrUnfinished, patience, list(ranks))
	}
	return nil
}

// unfinished are the ranks that have a connection.
func (h *host) unfinished() (ranks []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for rank := 1; rank < h.size; rank++ {
		if _, there := h.seats[rank]; there {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// dismiss hangs up on a rank.
func (h *host) dismiss(rank int) {
	h.mu.Lock()
	conn := h.seats[rank]
	h.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// close ends everything, and returns when nothing of the host runs.
func (h *host) close() {
	h.mu.Lock()
	h.end("the root was closed")
	h.mu.Unlock()
	h.running.Wait()
	_ = h.server.Close()
}
