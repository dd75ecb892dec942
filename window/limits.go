package window

import (
	"fmt"
	"time"
)

// Limits bound what the clients of a [Server] take. A field that is 0 has its default; a negative duration is no bound. A
// session that reaches a bound of time ends: the client's calls return a world.ErrEvicted that names the bound.
type Limits struct {
	// Sessions is the most sessions at once. At this number a new session replaces the oldest one that is older than 1 s and
	// has never had a seat. Where there is none, the new client's Dial returns a world.ErrEvicted that names the bound; while
	// 64 other clients are being told so, it calls again. The default is 64 more than the seats of all windows.
	Sessions int
	// SeatsPerSession is the most seats of one window that a session has at once. The next Attach returns an ErrNoSeat, and the
	// session goes on. The default is 16.
	SeatsPerSession int
	// AttachTime is how long a session may last before it has its first seat. The default is a minute.
	AttachTime time.Duration
	// LockTime is how long a session may hold a lock for which a rank or another client waits. The default is 5 minutes. A
	// lock for which nothing waits may be held for any time.
	LockTime time.Duration
	// IdleTime is how long a session may issue no operation, while it waits for no lock. It is 3 seconds at the least,
	// because a client reports once a second whether it issues operations. The default is an hour.
	IdleTime time.Duration
}

const (
	sparesSessions   = 64
	defaultSeatShare = 16
	defaultAttach    = time.Minute
	defaultLock      = 5 * time.Minute
	defaultIdle      = time.Hour
	leastIdle        = 3 * time.Second
	// attachShare is how long a session without a seat stays while others need its place.
	attachShare = time.Second
)

// complete returns the limits with their defaults, for windows that have so many seats.
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

// shortest and longest bound the period in which sessions are compared with the limits.
const (
	shortestPeriod = 10 * time.Millisecond
	longestPeriod  = time.Second
)

// period is how often sessions are compared with the limits: a quarter of the shortest of them.
func (l *Limits) period() time.Duration {
	period := longestPeriod
	for _, limit := range [...]time.Duration{l.AttachTime, l.LockTime, l.IdleTime} {
		if limit > 0 {
			period = min(period, limit/4)
		}
	}
	return max(period, shortestPeriod)
}

// over reports whether a time has reached a bound.
func over(is, bound time.Duration) bool { return bound >= 0 && is >= bound }
