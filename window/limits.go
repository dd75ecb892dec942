package window

import (
	"fmt"
	"time"
)

// Limits bounds what the clients of a [Server] use. A field that is 0 has its default. A negative duration means no
// bound. A session that reaches a bound of time ends: the client's calls return a world.ErrEvicted that names the
// bound.
type Limits struct {
	// Sessions is the maximum number of sessions at the same time. The default is 64 more than the seats of all
	// windows.
	//
	// At the maximum a new session replaces the oldest one that is older than 1 s and has never had a seat. If there is
	// none, Dial of the new client returns a world.ErrEvicted that names the bound. At most 64 clients are rejected at
	// the same time; Dial of further ones tries again.
	Sessions int
	// SeatsPerSession is the maximum number of seats that a session has of one window at the same time. The next Attach
	// returns an [ErrNoSeat], and the session continues. The default is 16.
	SeatsPerSession int
	// AttachTime is how long a session may last without having had a seat. The default is 1 minute.
	AttachTime time.Duration
	// LockTime is how long a session may hold a lock for which a rank or another client waits. The default is 5
	// minutes. A lock that no rank or client waits for may be held for any time.
	LockTime time.Duration
	// IdleTime is how long a session may issue no operation while it waits for no lock. The minimum is 3 s, because a
	// client reports once a second whether it issues operations. The default is 1 hour.
	IdleTime time.Duration
}

const (
	sparesSessions   = 64
	defaultSeatShare = 16
	defaultAttach    = time.Minute
	defaultLock      = 5 * time.Minute
	defaultIdle      = time.Hour
	leastIdle        = 3 * time.Second
	// attachShare is how long a session without a seat stays when others need its place.
	attachShare = time.Second
)

// complete returns the limits with defaults filled in. seats is the number of seats of all windows.
func (l Limits) complete(seats int) (Limits, error) {
	switch {
	case l.Sessions < 0 || l.SeatsPerSession < 0:
		return l, fmt.Errorf("%w: Limits of %d Sessions and %d SeatsPerSession, must be 1 or more, or 0 for the default", ErrArgument, l.Sessions, l.SeatsPerSession)
	case l.IdleTime > 0 && l.IdleTime < leastIdle:
		return l, fmt.Errorf("%w: Limits.IdleTime %v, must be %v or more, 0 for the default, or negative for no bound", ErrArgument, l.IdleTime, leastIdle)
	}
	if l.Sessions == 0 {
		l.Sessions = seats + sparesSessions
	}
	if l.SeatsPerSession == 0 {
		l.SeatsPerSession = defaultSeatShare
	}
	for _, d := range [...]struct {
		limit *time.Duration
		is    time.Duration
	}{{&l.AttachTime, defaultAttach}, {&l.LockTime, defaultLock}, {&l.IdleTime, defaultIdle}} {
		if *d.limit == 0 {
			*d.limit = d.is
		}
	}
	return l, nil
}

// shortestPeriod and longestPeriod bound the time between two comparisons of the sessions with the limits.
const (
	shortestPeriod = 10 * time.Millisecond
	longestPeriod  = time.Second
)

// period returns the time between two comparisons of the sessions with the limits: a quarter of the shortest limit.
func (l *Limits) period() time.Duration {
	period := longestPeriod
	for _, limit := range [...]time.Duration{l.AttachTime, l.LockTime, l.IdleTime} {
		if limit > 0 {
			period = min(period, limit/4)
		}
	}
	return max(period, shortestPeriod)
}

// over reports whether a duration has reached a bound, which is none if negative.
func over(is, bound time.Duration) bool { return bound >= 0 && is >= bound }
