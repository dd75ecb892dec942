package root

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/proof"
)

func (h *host) accept() {
	for {
		carrier, err := h.listener.Accept()
		if err != nil {
			// Accept may fail for a temporary reason, such as too many open files.
			h.unproven.MakeRoom()
			select {
			case <-h.closing:
				return
			case <-time.After(firstPause):
				continue
			}
		}
		if !h.unproven.Admit(carrier) {
			h.rejectFull(carrier)
			continue
		}
		conn := h.settings.connection().Accept(carrier)
		if !h.keep(conn, carrier) {
			_ = h.unproven.Leave(carrier)
			return
		}
		h.running.Go(func() {
			c, err := h.acceptClaim(conn, carrier)
			h.welcome(conn, c, err)
		})
	}
}

// rejectFull logs a caller for which there was no room.
func (h *host) rejectFull(conn net.Conn) {
	select {
	case <-h.closing:
	default:
		h.recordRejection(conn, proof.ErrFull)
	}
}

// keep records a connection, so that close can end it. It returns false, and closes the connection, if the host is
// over.
func (h *host) keep(conn, carrier net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == over {
		_ = carrier.Close()
		return false
	}
	h.open[conn] = carrier
	return true
}

// welcome owns a connection, which has made a claim unless err is set, until the server takes it or it is closed.
func (h *host) welcome(conn net.Conn, c claim, err error) {
	if err == nil && c.after == h.job {
		// The rank has left this job. It waits for the end of this root, and then calls that of the next job.
		_ = awaitEnd(conn)
		h.drop(conn)
		return
	}
	if err == nil {
		err = h.seat(conn, c)
	}
	if err != nil {
		h.recordRejection(conn, err)
		h.drop(conn)
		return
	}
	rank := int(c.rank)
	err = awaitEnd(conn)
	switch h.leaveSeat(rank) {
	case forming:
		h.recordRejection(conn, rankError(fmt.Sprintf("rank %d was there and has ended", rank)))
		h.drop(conn)
	case disagreed, over:
		h.sendVerdict(conn, h.finalVerdict)
		h.recordInformed(c.rank)
		h.drop(conn)
	case begun:
		if errors.Is(err, os.ErrDeadlineExceeded) {
			_ = conn.SetReadDeadline(time.Time{})
			h.sendVerdict(conn, verdict{outcome: begin, job: h.job})
		} else {
			// The connection has just ended. The server notices that as for any other.
			_ = conn.Close()
		}
		h.release(conn)
		h.server.Serve(&served{Conn: conn, ended: sync.OnceFunc(func() { h.hasLeft(rank) })}, rank)
	}
}

// awaitEnd returns when the other side ends the connection or sends something out of turn, or when this side ends it
// or interrupts the read.
func awaitEnd(conn net.Conn) error {
	var stray [1]byte
	_, err := conn.Read(stray[:])
	return err
}

// acceptClaim makes the other side prove the key, and reads its claim.
func (h *host) acceptClaim(conn, carrier net.Conn) (claim, error) {
	secure := func() (io.ReadWriter, error) {
		if err := conn.SetDeadline(time.Now().Add(proofTime)); err != nil {
			return nil, err
		}
		return conn, bootconn.Handshake(conn)
	}
	if _, err := h.unproven.Accept(carrier, secure, h.settings.Key, purpose); err != nil {
		return claim{}, err
	}
	c, err := readClaim(conn)
	if err != nil {
		return claim{}, err
	}
	return c, conn.SetDeadline(time.Time{})
}

// seat gives the claimed rank to the connection, or returns the reason why not.
func (h *host) seat(conn net.Conn, c claim) error {
	h.mu.Lock()
	v := h.judge(c)
	switch v.outcome {
	case begin:
		h.seats[int(c.rank)] = conn
		h.beginIfComplete()
	case disagreement:
		if h.phase == forming {
			v.text += fmt.Sprintf(" (called from %s)", conn.RemoteAddr())
			h.disagree(v)
		}
	}
	h.mu.Unlock()
	if v.outcome == begin {
		return nil
	}
	h.sendVerdict(conn, v)
	if v.outcome == disagreement {
		h.recordInformed(c.rank)
	}
	return rankError(v.text)
}

// judge returns the verdict for a claim; begin means that it is granted when all ranks are present. The caller holds
// the mutex.
func (h *host) judge(c claim) verdict {
	reject := func(format string, a ...any) verdict {
		return verdict{outcome: rejected, text: fmt.Sprintf(format, a...)}
	}
	switch {
	case h.phase == disagreed:
		return h.finalVerdict
	case h.phase == over:
		return reject("the root has ended")
	}
	if what := h.differs(c); what != "" && h.phase == begun {
		return reject("%s, and the job has begun", what)
	} else if what != "" {
		return verdict{outcome: disagreement, text: what}
	}
	switch {
	case int64(c.rank) >= int64(h.size):
		return reject("rank %d of %d, allowed are 1 to %d", c.rank, h.size, h.size-1)
	case c.rank == 0:
		return reject("rank 0 is the root itself, at %s", h.listener.Addr())
	case h.phase == begun:
		return reject("the job has begun, with another rank %d", c.rank)
	}
	if other, taken := h.seats[int(c.rank)]; taken {
		return reject("rank %d is taken by %s", c.rank, other.RemoteAddr())
	}
	return verdict{outcome: begin}
}

// differs describes a setting in which a rank and this one differ, if they do. It cannot be known which of the two is
// wrong.
func (h *host) differs(c claim) string {
	if int64(c.size) != int64(h.size) {
		return fmt.Sprintf("rank %d has %s=%d, rank 0 has %d", c.rank, sizeVariable, c.size, h.size)
	}
	if theirs, mine := c.terms.Differ(h.settings.Terms); theirs != mine {
		return fmt.Sprintf("rank %d has %s, rank 0 %s", c.rank, theirs, mine)
	}
	return ""
}

// leaveSeat returns the phase in which the connection of a rank stops waiting.
func (h *host) leaveSeat(rank int) phase {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phase == forming {
		delete(h.seats, rank)
	}
	return h.phase
}

func (h *host) sendVerdict(conn net.Conn, v verdict) {
	_ = conn.SetWriteDeadline(time.Now().Add(proofTime))
	_, _ = conn.Write(v.encode())
	_ = conn.SetWriteDeadline(time.Time{})
}

// recordRejection records a caller that was rejected or has gone, and logs the first of its kind.
func (h *host) recordRejection(conn net.Conn, err error) {
	h.mu.Lock()
	first := h.rejections.record(conn.RemoteAddr(), err)
	h.mu.Unlock()
	if first {
		h.settings.log().Warn("a caller of the root was rejected, or has gone", "caller", conn.RemoteAddr(), "root", h.settings.Root, "why", err)
	}
}

func (h *host) drop(conn net.Conn) {
	h.release(conn)
	_ = conn.Close()
}

// release undoes keep.
func (h *host) release(conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, conn)
}
