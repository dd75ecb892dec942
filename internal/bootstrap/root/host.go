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

// maxUnproven is the greatest number of connections that have not proved the key. When others wait, the oldest of
// them is closed.
const maxUnproven = 128

type phase int

const (
	// forming: ranks join, and a rank that ends releases its number.
	forming phase = iota
	// begun: all ranks are present, and each connection belongs to the PMI-1 server.
	begun
	// disagreed: ranks that hold the key are not of one job, so the job can never be complete. Ranks that call get the
	// disagreement as their verdict.
	disagreed
	// over: the root has given up or is closed.
	over
)

// A host is the root's side of a job, in rank 0.
//
// A connection has one goroutine at a time: that of welcome until the verdict, then the server's. A rank that waits
// for the verdict sends nothing, so welcome reads to detect the end of the connection. When the phase changes, a read
// deadline in the past interrupts that.
type host struct {
	settings *Settings
	size     int
	// job is a number of this job alone, not 0. The ranks receive it when the job begins.
	job      uint64
	listener net.Listener
	server   *pmi.Server
	running  sync.WaitGroup
	// unproven holds the connections that have not proved the key.
	unproven *proof.Room
	// complete is closed when the phase becomes begun, broken when it becomes disagreed, closing when it becomes
	// over.
	complete, broken, closing chan struct{}
	// allInformed is closed when all ranks have received the disagreement.
	allInformed chan struct{}
	// left is closed when, after begun, only rank 0 still has a connection.
	left chan struct{}

	mu    sync.Mutex
	phase phase
	// open maps the connections of welcome to the connections that carry them. Closing the carrier never waits;
	// closing TLS sends an alert first.
	open map[net.Conn]net.Conn
	// seats are the connections of the ranks that have claimed theirs. Rank 0 has none.
	seats map[int]net.Conn
	// finalVerdict is the verdict for ranks that are in their seats when the phase becomes disagreed or over. Ranks
	// that call while it is disagreed get it, too.
	finalVerdict verdict
	// informed holds the ranks that have received the disagreement.
	informed   map[uint32]bool
	rejections rejections
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
		complete: make(chan struct{}), broken: make(chan struct{}), closing: make(chan struct{}), allInformed: make(chan struct{}), left: make(chan struct{}),
		open: make(map[net.Conn]net.Conn), seats: make(map[int]net.Conn), informed: make(map[uint32]bool)}
	h.mu.Lock()
	h.beginIfComplete()
	h.mu.Unlock()
	h.running.Go(h.accept)
	return h
}

// own returns rank 0's own connection to the server.
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

// beginIfComplete begins the job if all ranks have seats. The caller holds the mutex.
func (h *host) beginIfComplete() {
	if len(h.seats) < h.size-1 {
		return
	}
	h.phase = begun
	close(h.complete)
	if h.size == 1 {
		close(h.left)
	}
	h.interruptSeats()
}

// interruptSeats interrupts the goroutines of ranks that wait in their seats. The caller holds the mutex.
func (h *host) interruptSeats() {
	for _, conn := range h.seats {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// hasLeft records that a rank's connection to the server has ended.
func (h *host) hasLeft(rank int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seats, rank)
	if len(h.seats) == 0 {
		close(h.left)
	}
}

// served is a connection that reports its end to the host.
type served struct {
	net.Conn
	ended func()
}

func (c *served) Close() error {
	defer c.ended()
	return c.Conn.Close()
}

// end makes the phase over and sends the reason to the ranks in their seats. The caller holds the mutex.
func (h *host) end(why string) {
	if h.phase == over {
		return
	}
	if h.phase != disagreed {
		h.finalVerdict = verdict{outcome: incomplete, text: why}
	}
	if h.phase == forming {
		h.interruptSeats()
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

// finish closes the host when all ranks have left, or after patience. If ctx ends before that, the host continues to
// serve.
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

// unfinished returns the ranks that have a connection.
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

// dismiss closes the connection of a rank.
func (h *host) dismiss(rank int) {
	h.mu.Lock()
	conn := h.seats[rank]
	h.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// close ends everything, and returns when no goroutine of the host runs.
func (h *host) close() {
	h.mu.Lock()
	h.end("the root was closed")
	h.mu.Unlock()
	h.running.Wait()
	_ = h.server.Close()
}
