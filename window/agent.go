package window

import (
	"fmt"
	"slices"

	"github.com/onesided/rma/internal/job"
)

// An agent acquires locks of this rank's part for ranks that do not map its control block. It uses the same words as
// the ranks that map it: see lock.go. It must not wait, so a request for a lock that is not free becomes a wish.

// lock grants a lock, or keeps its request as a wish, with a copy of the packet that came with it.
func (s *server) lock(from *job.Link, m *job.Message, packet []byte) error {
	kind := LockKind(m.A)
	if kind != Shared && kind != Exclusive || m.B > lockOnce {
		return fmt.Errorf("lock of kind %d, %d", m.A, m.B)
	}
	if kind == Exclusive && s.core.hints.ReadOnly {
		return ErrReadOnly
	}
	if slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.kind != 0 && w.from.Rank() == from.Rank() }) {
		return fmt.Errorf("lock by rank %d, which waits for one already", from.Rank())
	}
	w := wish{lease: lease{kind: kind, ticket: m.X, once: m.B == lockOnce}, from: from}
	riding, err := s.carry(from, packet)
	switch {
	case err != nil:
		return err
	case s.claimed.Load() == 0 && !s.busy(from) && s.take(&w):
		return s.begin(from, &riding, w.lease)
	}
	s.wishes = append(s.wishes, s.keep(w, packet))
	s.claim()
	s.retry()
	return nil
}

// unlock releases the lock of a rank, or withdraws its request.
func (s *server) unlock(from *job.Link, m *job.Message) error {
	kind := LockKind(m.A)
	if kind != Shared && kind != Exclusive {
		return fmt.Errorf("unlock of kind %d", m.A)
	}
	for i, w := range s.wishes {
		if w.kind != 0 && w.from.Rank() == from.Rank() && w.ticket == m.X {
			s.drop(w)
			s.wishes = slices.Delete(s.wishes, i, i+1)
			s.forget(w)
			s.claim()
			return nil
		}
	}
	if !s.giveBack(kind, from.Rank()) {
		return fmt.Errorf("unlock by rank %d, which has no exclusive lock", from.Rank())
	}
	// The next lock request of the rank may already be here.
	s.grantWishes()
	return nil
}

// take acquires the lock for the rank of a request, if it is free. For the end of an epoch it reports whether this rank
// has posted.
func (s *server) take(w *wish) bool {
	var taken bool
	switch rank := w.from.Rank(); w.kind {
	case 0:
		return reached(&s.core.posted[rank], w.number)
	case Shared:
		taken = s.takeShared(s.holder(rank))
	default:
		taken = s.takeExclusive(w)
	}
	if taken {
		s.core.world.RaceAcquire()
		if s.core.host != s.core {
			s.held.Or(1 << w.kind)
			s.grants.Add(1)
		}
	}
	return taken
}

// holder returns the number of a rank in lock words. A client has that of its seat.
func (s *server) holder(rank int) int {
	if s.core.host == s.core {
		return rank
	}
	return s.core.host.size + s.core.seat
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
	s.core.host.ringHolder(s.liveHolder())
	return false
}

func (s *server) takeExclusive(w *wish) bool {
	host, control := s.core.host, &s.core.own.control
	if !w.taken {
		turn := host.turns.ends.Load()
		if s.liveHolder() != 0 {
			if turn != 0 {
				// One of the ranks that had the turn has acquired the lock.
				host.turns.ends.CompareAndSwap(turn, 0)
			}
			return false
		}
		if host.mappersFirst() || !control.exclusive().CompareAndSwap(0, lockWordOf(s.holder(w.from.Rank()))) {
			return false
		}
		w.taken = true
	}
	for origin := range host.holders() {
		shared := control.pair(origin, sharedAt)
		if shared.Load() == 0 {
			continue
		}
		if !host.gone(origin) {
			return false
		}
		shared.Store(0)
	}
	return true
}

// liveHolder returns the exclusive word. It first breaks the lock of a rank that has failed or left.
func (s *server) liveHolder() uint32 {
	exclusive := s.core.own.control.exclusive()
	holder := exclusive.Load()
	if holder != 0 && !s.core.host.livingHolder(holder) && exclusive.CompareAndSwap(holder, 0) {
		return exclusive.Load()
	}
	return holder
}

// livingHolder reports whether an exclusive word of this rank's part names a client, or a rank that has neither failed
// nor left.
func (c *core) livingHolder(word uint32) bool {
	holder := holderOf(word)
	return holder >= 0 && holder < c.holders() && !c.gone(holder)
}

// gone reports whether a holder of a lock of this rank's part has failed or left. A client releases its locks before it
// leaves its seat.
func (c *core) gone(holder int) bool { return holder < c.size && c.world.Gone(holder) }

// giveBack releases the lock of a rank and reports whether the rank had it.
func (s *server) giveBack(kind LockKind, rank int) bool {
	c, holder := s.core.host, s.holder(rank)
	s.core.world.RaceRelease()
	if c != s.core {
		s.held.And(^(uint32(1) << kind))
	}
	if kind == Shared {
		c.giveBackShared(c.own, holder)
		return true
	}
	exclusive, word := c.own.control.exclusive(), lockWordOf(holder)
	if exclusive.Load() != word {
		return false
	}
	c.leaveToMappers()
	had := exclusive.CompareAndSwap(word, 0)
	if had {
		c.ringWaiters(c.own)
	}
	return had
}

// drop releases what a wish has already acquired.
func (s *server) drop(w *wish) {
	if w.kind != 0 && (w.taken || w.held) {
		s.giveBack(w.kind, w.from.Rank())
	}
}

// failed breaks the locks of a rank that has failed. It drops the rank's packets that wait for a post, because no rank
// may post to it any more.
//
// If this rank does not map the failed rank, only this rank breaks its locks. It has closed all connections with the
// failed rank. So nothing more can arrive that was done under the lock. Other ranks that map this part may have learned
// of the failure earlier.
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
		s.early = slices.DeleteFunc(s.early, func(w *wish) bool {
			if w.from.Rank() != rank {
				return false
			}
			s.forget(w)
			return true
		})
		s.waiting.Store(len(s.early) > 0)
	})
}
