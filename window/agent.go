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

// A wish is a lock that a rank waits for.
type wish struct {
	from   *world.Link
	kind   LockKind
	ticket uint64
	// taken tells that it has the exclusive word, and waits for shared holders.
	taken bool
}

func (s *server) lock(from *world.Link, m *world.Message) error {
	kind := LockKind(m.A)
	if kind != Shared && kind != Exclusive {
		return fmt.Errorf("lock of kind %d", m.A)
	}
	if slices.ContainsFunc(s.wishes, func(w *wish) bool { return w.from.Rank() == from.Rank() }) {
		return fmt.Errorf("lock by rank %d, which waits for one already", from.Rank())
	}
	w := wish{from: from, kind: kind, ticket: m.X}
	if s.grant(&w) {
		return nil
	}
	waiting := w
	s.wishes = append(s.wishes, &waiting)
	if !s.retrying {
		s.retrying = true
		s.core.world.Retry(s.grantWishes)
	}
	return nil
}

// grantWishes grants what can be granted, in the order of asking, and tells whether
// no wish is left.
func (s *server) grantWishes() bool {
	if s.ended.Load() {
		return true
	}
	s.wishes = slices.DeleteFunc(s.wishes, func(w *wish) bool {
		if s.core.world.Gone(w.from.Rank()) {
			s.drop(w)
			return true
		}
		return s.grant(w)
	})
	s.retrying = len(s.wishes) > 0
	return !s.retrying
}

// grant gives the lock to the rank that wishes it, if it is free.
func (s *server) grant(w *wish) bool {
	if w.kind == Shared && !s.takeShared(w.from.Rank()) || w.kind == Exclusive && !s.takeExclusive(w) {
		return false
	}
	w.from.Reply(&world.Message{Kind: messageGranted, Service: s.core.number, X: w.ticket}, nil)
	return true
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
		c.giveBackShared(c.own, rank)
		if c.own.control.exclusive().CompareAndSwap(uint32(rank)+1, 0) {
			c.ringWaiters(c.own)
		}
	})
}

// unlock gives back the lock of a rank, or its wish.
func (s *server) unlock(from *world.Link, m *world.Message) error {
	kind := LockKind(m.A)
	if kind != Shared && kind != Exclusive {
		return fmt.Errorf("unlock of kind %d", m.A)
	}
	for i, w := range s.wishes {
		if w.from.Rank() == from.Rank() && w.ticket == m.X {
			s.drop(w)
			s.wishes = slices.Delete(s.wishes, i, i+1)
			return nil
		}
	}
	c := s.core
	if kind == Shared {
		c.giveBackShared(c.own, from.Rank())
		return nil
	}
	if !c.own.control.exclusive().CompareAndSwap(uint32(from.Rank())+1, 0) {
		return fmt.Errorf("unlock by rank %d, which has no exclusive lock", from.Rank())
	}
	c.ringWaiters(c.own)
	return nil
}

// drop takes back what a wish has already.
func (s *server) drop(w *wish) {
	if w.taken && s.core.own.control.exclusive().CompareAndSwap(uint32(w.from.Rank())+1, 0) {
		s.core.ringWaiters(s.core.own)
	}
}
