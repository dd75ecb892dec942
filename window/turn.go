package window

import (
	"sync"
	"sync/atomic"
	"time"
)

// Ranks that map the exclusive lock take it when they find it free; the agent grants it to those that
// do not when it makes progress, and has the next one then that asks. So wherever one kind takes it
// again and again, the other would hardly ever find it free. They take turns: who gives it back while the other
// kind waits leaves it to that.
//
//   - The agent, which sees by their words that ranks wait, grants nothing until one of them has taken the lock.
//   - A rank that maps the lock, which sees by the count of wishes that others wait, does not take it until the agent
//     has granted it.
//
// Neither waits longer than about longestTurn for the other, which may be stopped. Who has missed a turn is not left
// the next one, nor the next three if it misses another, and so on, until it comes.
//
// Without turns one kind starves. In TestLockTurns five ranks, of which only rank 0 maps the lock, then do not end within
// a minute; with turns they take 0.05 s. Four ranks over TCP, of which one maps it, then take 2 to 30 s instead of 0.4 s.

// The values of the word turn, which whoever gives the exclusive lock back writes while it has that.
const (
	agentsTurn uint32 = iota
	mappersTurn
)

// longestTurn is about what it takes until a rank runs that was woken, where others use the cores.
const longestTurn = 4 * time.Millisecond

// A lateness is of somebody who has missed turns: the next so many it is not left.
type lateness struct{ waived, gap uint32 }

const longestGap = 1<<10 - 1

// waive tells whether it is not left this turn.
func (l *lateness) waive() bool {
	if l.waived == 0 {
		return false
	}
	l.waived--
	return true
}

func (l *lateness) miss() {
	l.gap = min(2*l.gap+1, longestGap)
	l.waived = l.gap
}

// A mappersTurns is the turns at this rank's lock of those that map it, as its agents see them: each client's end has
// an agent of its own.
type mappersTurns struct {
	// ends is when the turn does, on the clock of the window's World; 0 where there is none.
	ends atomic.Int64
	mu   sync.Mutex
	// late are ranks that have missed one while they wait.
	late map[int]*lateness
}

// waiting calls for each live rank that waits until nobody has the exclusive word, and forgets who was late and waits no more.
func (c *core) waiting(each func(origin int)) {
	for origin := range c.size {
		if c.waits(origin) && !c.gone(origin) {
			each(origin)
		} else {
			delete(c.turns.late, origin)
		}
	}
}

// leaveToMappers leaves the lock, which an agent is about to give back, to ranks that wait for it.
func (c *core) leaveToMappers() {
	control, t := &c.own.control, &c.turns
	if control.waiters().Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	some := false
	c.waiting(func(origin int) {
		late := t.late[origin]
		some = late == nil || !late.waive() || some
	})
	if some {
		control.turn().Store(mappersTurn)
		t.ends.Store(int64(c.now() + longestTurn))
	}
}

// mappersFirst tells whether the lock, which is free, is left to ranks that wait for it, and ends their turn
// if that has lasted too long, or nobody waits any more.
func (c *core) mappersFirst() bool {
	t := &c.turns
	ends := t.ends.Load()
	if ends == 0 {
		return false
	}
	if c.own.control.turn().Load() != mappersTurn {
		// One of them has taken the lock and given it back.
		t.ends.CompareAndSwap(ends, 0)
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	over, some := int64(c.now()) >= ends, false
	c.waiting(func(origin int) {
		some = true
		if !over {
			return
		}
		if t.late == nil {
			t.late = make(map[int]*lateness)
		}
		if t.late[origin] == nil {
			t.late[origin] = new(lateness)
		}
		t.late[origin].miss()
	})
	if some && !over {
		return true
	}
	t.ends.CompareAndSwap(ends, 0)
	return false
}

// claim counts those that wait for the lock, and shows to those that map it how many of them this server has to grant it.
func (s *server) claim() {
	waits, claimed := int32(0), int32(0)
	for _, w := range s.wishes {
		if w.kind == 0 || w.held {
			continue
		}
		waits++
		if !w.taken {
			claimed++
		}
	}
	s.waits.Store(waits)
	s.show(claimed)
}

func (s *server) show(claimed int32) {
	if before := s.claimed.Swap(claimed); before != claimed {
		s.core.own.control.wishes().Add(uint32(claimed - before))
	}
}

// agentsFirst tells whether the lock, if it is free, is left to agents of the target.
func (c *control) agentsFirst() bool { return c.wishes().Load() != 0 && c.turn().Load() == agentsTurn }

// leaveToAgents leaves the lock, which a rank that maps it is about to give back, to agents with wishes, if there are some.
func (c *control) leaveToAgents() bool {
	if c.wishes().Load() == 0 {
		return false
	}
	if c.turn().Load() != agentsTurn {
		c.turn().Store(agentsTurn)
	}
	return true
}

// A giveWay is one wait of a rank that maps a lock, as far as agents go first.
type giveWay struct {
	// since is when it began to wait for an agent, 0 if it does not. done tells that it does not any more.
	since time.Duration
	done  bool
}

// first tells whether to wait for an agent of the target to take the lock, which is free.
func (g *giveWay) first(c *core, target int, p *peer) bool {
	switch {
	case g.done || !p.control.agentsFirst():
		return false
	case g.since == 0:
		if g.done = p.late.waive(); g.done {
			return false
		}
		g.since = max(c.now(), 1)
		c.world.Ring(target)
	case c.now()-g.since >= longestTurn:
		g.done = true
		p.late.miss()
		return false
	}
	return true
}

// taken notes that the lock is not free any more.
func (g *giveWay) taken(p *peer) {
	if g.since != 0 {
		g.since, p.late = 0, lateness{}
	}
}
