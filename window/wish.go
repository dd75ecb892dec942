package window

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/internal/job"
)

// What other ranks have asked for, and what rides with it, may have to wait: for a lock until
// that is free, for an end of an epoch until this rank has posted, and for a stripe. It becomes
// a wish, which is tried again whenever progress is made.

// A lease is a lock that a rank asks for, or, of no kind, the end of its epoch of a number.
type lease struct {
	kind   LockKind
	ticket uint64
	// once tells that it is given back when what rides with it has been carried out.
	once   bool
	number uint32
}

// A wish is a lease that waits.
type wish struct {
	lease
	from *job.Link
	// taken tells that it has the exclusive word, and waits for shared holders; held that
	// it has the lock, and waits for the rest of what rides with it.
	taken, held bool
	// packet rides with it, and riding is the carrying out of that, answer where its answer is
	// made.
	packet, answer []byte
	riding         carrying
}

// keep gives a wish that waits, with a copy of what rides with it, until it is forgotten.
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

// forget has the memory of a wish used again. It is nobody's until then, in whichever list it
// may be still.
func (s *server) forget(w *wish) {
	*w = wish{packet: w.packet, answer: w.answer}
	s.spare = append(s.spare, w)
}

// busy tells whether something that a rank has sent before is not carried out yet, though it
// could be but for a stripe.
func (s *server) busy(from *job.Link) bool {
	return slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind == 0 && w.from == from })
}

// completing tells whether the end of an epoch of a rank is being carried out: it may wait for a stripe when the rank has left.
func (s *server) completing(rank int) (is bool) {
	s.core.world.Exclude(func() {
		is = slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind == 0 && w.from.Rank() == rank })
	})
	return is
}

// retry has wishes tried again, until none is left.
func (s *server) retry() {
	if !s.retrying && len(s.wishes) > 0 {
		s.retrying = true
		s.core.world.Retry(s.tryAgain)
	}
}

// complete ends an epoch of another rank, or keeps what rides with its Complete until this
// rank has posted.
func (s *server) complete(from *job.Link, m *job.Message, packet []byte) error {
	c, rank := s.core, from.Rank()
	number, last := uint32(m.Z), c.own.control.pair(rank, completeAt).Load()
	// What waits for a stripe may be the one before.
	if ahead := number - last; m.Z > 1<<32-1 || ahead != 1 && ahead != 2 || slices.ContainsFunc(s.early, func(w *wish) bool { return w.from.Rank() == rank }) {
		return fmt.Errorf("complete %d, the last was %d", m.Z, last)
	}
	w := wish{lease: lease{ticket: m.X, number: number}, from: from}
	riding, err := s.carry(from, packet)
	if err != nil {
		return err
	}
	// Who posts looks for what waits afterwards.
	s.waiting.Store(true)
	if s.take(&w) {
		s.waiting.Store(len(s.early) > 0)
		return s.begin(from, &riding, w.lease)
	}
	s.early = append(s.early, s.keep(w, packet))
	return nil
}

// serveRides carries out what has waited for a post.
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

// begin carries out what rides, under the lease that it needs.
func (s *server) begin(from *job.Link, riding *carrying, l lease) error {
	riding.rides, riding.lease = true, l
	if !riding.goOn() {
		s.later(from, riding)
		return nil
	}
	return riding.end(from)
}

// grantWishes grants what can be granted, the oldest first.
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
		// This rank may sleep until that is done.
		s.core.world.Ring(s.core.rank)
	}
}

// lost tells whether nobody is there any more for a wish. What a rank has completed counts
// though it has left.
func (s *server) lost(w *wish) bool {
	rank := w.from.Rank()
	return s.core.world.Failure(rank) != nil || w.kind != 0 && s.core.world.Gone(rank)
}

// fulfil goes on with a wish, and tells whether it is fulfilled.
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

// grant ends the epoch, or gives the lock back that is for once, and tells the rank, with the
// answer to what has ridden with it.
func (s *server) grant(to *job.Link, l *lease, answer []byte) {
	switch {
	case s.ended.Load():
		// There may be no words any more.
	case l.kind == 0:
		s.core.world.BeforeTelling()
		s.core.own.control.pair(to.Rank(), completeAt).Store(l.number)
	case l.once:
		s.giveBack(l.kind, to.Rank())
	}
	if l.ticket == 0 {
		return
	}
	to.Reply(&job.Message{Kind: messageGranted, Service: s.core.number, X: l.ticket}, answer)
}
