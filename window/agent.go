package window

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/world"
)

// An agent takes locks of this rank's part for ranks that do not map its control
// block, in the words in which those that do take them: see lock.go. It must not
// wait, so a lock that is not free becomes a wish, which is tried again whenever
// progress is made.

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
	from *world.Link
	// taken tells that it has the exclusive word, and waits for shared holders; held that
	// it has the lock, and waits for the rest of what rides with it.
	taken, held bool
	// packet rides with it, and riding is the carrying out of that, answer where its answer is
	// made.
	packet, answer []byte
	riding         carrying
}

// lock grants a lock, or keeps it as a wish with a copy of what rides with it.
func (s *server) lock(from *world.Link, m *world.Message, packet []byte) error {
	kind := LockKind(m.A)
	if kind != Shared && kind != Exclusive || m.B > lockOnce {
		return fmt.Errorf("lock of kind %d, %d", m.A, m.B)
	}
	if slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind != 0 && w.from.Rank() == from.Rank() }) {
		return fmt.Errorf("lock by rank %d, which waits for one already", from.Rank())
	}
	w := wish{lease: lease{kind: kind, ticket: m.X, once: m.B == lockOnce}, from: from}
	riding, err := s.carry(from, packet)
	switch {
	case err != nil:
		return err
	case !s.busy(from) && s.take(&w):
		return s.begin(from, &riding, w.lease)
	}
	s.wishes = append(s.wishes, s.keep(w, packet))
	s.retry()
	return nil
}

// busy tells whether something that a rank has sent before is not carried out yet, though it
// could be but for a stripe.
func (s *server) busy(from *world.Link) bool {
	return slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind == 0 && w.from == from })
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
func (s *server) complete(from *world.Link, m *world.Message, packet []byte) error {
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

// forget has the memory of a wish used again.
func (s *server) forget(w *wish) {
	w.riding = carrying{}
	s.spare = append(s.spare, w)
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
func (s *server) begin(from *world.Link, riding *carrying, l lease) error {
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

// take takes the lock for the rank that wishes it, if it is free, or tells whether this rank
// has posted.
func (s *server) take(w *wish) bool {
	switch rank := w.from.Rank(); w.kind {
	case 0:
		return reached(&s.core.posted[rank], w.number)
	case Shared:
		return s.takeShared(rank)
	default:
		return s.takeExclusive(w)
	}
}

// grant ends the epoch, or gives the lock back that is for once, and tells the rank, with the
// answer to what has ridden with it.
func (s *server) grant(to *world.Link, l *lease, answer []byte) {
	switch {
	case s.ended.Load():
		// There may be no words any more.
	case l.kind == 0:
		s.core.own.control.pair(to.Rank(), completeAt).Store(l.number)
	case l.once:
		s.giveBack(l.kind, to.Rank())
	}
	if l.ticket == 0 {
		return
	}
	to.Reply(&world.Message{Kind: messageGranted, Service: s.core.number, X: l.ticket}, answer)
}

// giveBack gives back the lock of a rank, and tells whether that had it.
func (s *server) giveBack(kind LockKind, rank int) bool {
	c := s.core
	if kind == Shared {
		c.giveBackShared(c.own, rank)
		return true
	}
	had := c.own.control.exclusive().CompareAndSwap(uint32(rank)+1, 0)
	if had {
		c.ringWaiters(c.own)
	}
	return had
}

func (s *server) takeShared(origin int) bool {
	if s.liveHolder() != 0 {
		return false
	}
	control := &s.core.own.control
	word := control.pair(origin, sharedAt)
	word.Store(1)
	if s.liveHolder() == 0 {
		return true
	}
	word.Store(0)
	s.core.ringHolder(s.liveHolder())
	return false
}

func (s *server) takeExclusive(w *wish) bool {
	control := &s.core.own.control
	if !w.taken {
		if s.liveHolder() != 0 || !control.exclusive().CompareAndSwap(0, uint32(w.from.Rank())+1) {
			return false
		}
		w.taken = true
	}
	for origin := range s.core.size {
		shared := control.pair(origin, sharedAt)
		if shared.Load() == 0 {
			continue
		}
		if !s.core.world.Gone(origin) {
			return false
		}
		shared.Store(0)
	}
	return true
}

// liveHolder is what the exclusive word holds; the lock of a rank that has failed or
// left is broken.
func (s *server) liveHolder() uint32 {
	exclusive := s.core.own.control.exclusive()
	holder := exclusive.Load()
	if holder != 0 && (int(holder) > s.core.size || s.core.world.Gone(int(holder-1))) && exclusive.CompareAndSwap(holder, 0) {
		return exclusive.Load()
	}
	return holder
}

// failed breaks the locks of a rank that has failed. If this rank does not map it only this
// one does: it has ended all connections with it, so that nothing comes any more that
// was done under the lock; but others who map this part may have heard of it first.
func (s *server) failed(rank int) {
	c := s.core
	if c.world.Mapped(rank) {
		return
	}
	c.world.Exclude(func() {
		if s.ended.Load() {
			return
		}
		s.giveBack(Shared, rank)
		s.giveBack(Exclusive, rank)
	})
}

// unlock gives back the lock of a rank, or its wish.
func (s *server) unlock(from *world.Link, m *world.Message) error {
	kind := LockKind(m.A)
	if kind != Shared && kind != Exclusive {
		return fmt.Errorf("unlock of kind %d", m.A)
	}
	for i, w := range s.wishes {
		if w.kind != 0 && w.from.Rank() == from.Rank() && w.ticket == m.X {
			s.drop(w)
			s.wishes = slices.Delete(s.wishes, i, i+1)
			return nil
		}
	}
	if !s.giveBack(kind, from.Rank()) {
		return fmt.Errorf("unlock by rank %d, which has no exclusive lock", from.Rank())
	}
	return nil
}

// drop takes back what a wish has already.
func (s *server) drop(w *wish) {
	if w.kind != 0 && (w.taken || w.held) {
		s.giveBack(w.kind, w.from.Rank())
	}
}
