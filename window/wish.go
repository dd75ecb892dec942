package window

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/internal/job"
)

// A lock request of another rank waits until the lock is free. The end of another rank's epoch waits until this rank
// has posted. Both may wait for a stripe, too. A request that waits is a wish. It is tried again whenever progress is
// made.

// A lease is a lock that a rank has requested. If it has no kind, it is the end of the rank's epoch of a number.
type lease struct {
	kind   LockKind
	ticket uint64
	// once is set if the lock is released when the packet of the request is applied.
	once   bool
	number uint32
}

// A wish is a lease that waits.
type wish struct {
	lease
	from *job.Link
	// taken is set if the request has the exclusive word, and waits for shared holders. held is set if it has the lock,
	// and waits until its packet is applied.
	taken, held bool
	// packet came with the request, riding is the state of applying it, and answer is the memory of its response.
	packet, answer []byte
	riding         carrying
}

// keep returns a wish that waits, with a copy of the packet that came with it. It is valid until forget.
func (s *server) keep(w wish, packet []byte) *wish {
	if len(s.spare) == 0 {
		s.spare = append(s.spare, new(wish))
	}
	n := len(s.spare) - 1
	kept := s.spare[n]
	s.spare = s.spare[:n]
	w.packet, w.answer = resized(kept.packet, len(packet)), kept.answer
	copy(w.packet, packet)
	*kept = w
	return kept
}

// forget makes the memory of a wish available for another. It is not used before that, even if a list still has the
// wish.
func (s *server) forget(w *wish) {
	*w = wish{packet: w.packet, answer: w.answer}
	s.spare = append(s.spare, w)
}

// busy reports whether an earlier packet of a rank waits for a stripe only.
func (s *server) busy(from *job.Link) bool {
	return slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind == 0 && w.from == from })
}

// completing reports whether the packet of a rank's Complete is being applied. It may wait for a stripe after the rank
// has left.
func (s *server) completing(rank int) (is bool) {
	s.core.world.Exclude(func() {
		is = slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind == 0 && w.from.Rank() == rank })
	})
	return is
}

// retry has progress try wishes again until none is left.
func (s *server) retry() {
	if !s.retrying && len(s.wishes) > 0 {
		s.retrying = true
		s.core.world.Retry(s.tryAgain)
	}
}

// complete ends an epoch of another rank. If this rank has not posted yet, complete keeps the packet of the Complete
// until then.
func (s *server) complete(from *job.Link, m *job.Message, packet []byte) error {
	c, rank := s.core, from.Rank()
	number, last := uint32(m.Z), c.own.control.pair(rank, completeAt).Load()
	// The previous epoch may still wait for a stripe.
	if ahead := number - last; m.Z > 1<<32-1 || ahead != 1 && ahead != 2 || slices.ContainsFunc(s.early, func(w *wish) bool { return w.from.Rank() == rank }) {
		return fmt.Errorf("complete %d, the last was %d", m.Z, last)
	}
	w := wish{lease: lease{ticket: m.X, number: number}, from: from}
	riding, err := s.carry(from, packet)
	if err != nil {
		return err
	}
	// A Post stores its number before it loads waiting. This stores waiting before take loads the number. So one of the
	// two finds the other.
	s.waiting.Store(true)
	if s.take(&w) {
		s.waiting.Store(len(s.early) > 0)
		return s.begin(from, &riding, w.lease)
	}
	s.early = append(s.early, s.keep(w, packet))
	return nil
}

// serveRides applies the packets that waited for a post.
func (s *server) serveRides() {
	if !s.waiting.Load() {
		return
	}
	s.core.world.Exclude(func() {
		s.early = slices.DeleteFunc(s.early, func(w *wish) bool {
			if !s.take(w) {
				return false
			}
			s.wishes = append(s.wishes, w)
			return true
		})
		s.waiting.Store(len(s.early) > 0)
		s.grantWishes()
		s.retry()
	})
}

// begin applies the packet of a request, under its lease.
func (s *server) begin(from *job.Link, riding *carrying, l lease) error {
	riding.rides, riding.lease = true, l
	if !riding.goOn() {
		s.later(from, riding)
		return nil
	}
	return riding.end(from)
}

// grantWishes grants the requests that can be granted, the oldest first.
func (s *server) grantWishes() {
	if s.ended.Load() {
		s.wishes = nil
		return
	}
	defer s.claim()
	before := len(s.wishes)
	s.wishes = slices.DeleteFunc(s.wishes, func(w *wish) bool {
		if s.lost(w) {
			s.drop(w)
		} else if !s.fulfil(w) {
			return false
		}
		s.forget(w)
		return true
	})
	if len(s.wishes) < before {
		// A call of this rank may sleep until one of these requests is done.
		s.core.world.Ring(s.core.rank)
	}
}

// lost reports whether the rank of a request has failed, or has left and waits for a lock. The Complete of a rank
// counts after the rank has left.
func (s *server) lost(w *wish) bool {
	rank := w.from.Rank()
	return s.core.world.Failure(rank) != nil || w.kind != 0 && s.core.world.Gone(rank)
}

// fulfil continues with a request and reports whether it is done.
func (s *server) fulfil(w *wish) bool {
	if !w.held {
		if w.kind != 0 && s.busy(w.from) || !s.take(w) {
			return false
		}
		w.held = true
		w.riding, _ = s.carry(w.from, w.packet)
		w.answer = resized(w.answer, len(w.riding.answer))
		w.riding.answer, w.riding.rides, w.riding.lease = w.answer, true, w.lease
	}
	if !w.riding.goOn() {
		return false
	}
	_ = w.riding.end(w.from)
	return true
}

// grant ends the epoch, or releases a lock that is for one packet only. It notifies the rank, with the response to the
// packet.
func (s *server) grant(to *job.Link, l *lease, answer []byte) {
	switch {
	case s.ended.Load():
		// The memory of the control block may be gone.
	case l.kind == 0:
		s.core.world.RaceRelease()
		s.core.own.control.pair(to.Rank(), completeAt).Store(l.number)
	case l.once:
		s.giveBack(l.kind, to.Rank())
	}
	if l.ticket == 0 {
		return
	}
	to.Reply(&job.Message{Kind: messageGranted, Service: s.core.number, X: l.ticket}, answer)
}
