package logqueue

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// warningPause is after how long the logger is told of the same again.
	warningPause = time.Minute
	// maxSubjects bounds the subjects that are told apart.
	maxSubjects = 64
)

// A subject is what a warning is about. Strangers choose neither class, one of a few,
// nor, as long as they are few, host.
type subject struct{ class, host string }

// others is the subject of those for which there is no room.
var others = subject{}

type warned struct {
	last time.Time
	// untold is how often it has happened since.
	untold int
}

// warnings decide what of all that strangers do the logger is told. They could fill a
// disk with it.
type warnings struct {
	mu   sync.Mutex
	kept map[subject]warned
}

// due reports whether to warn now, and how often the same has happened and not been told.
func (w *warnings) due(about subject, now time.Time) (tell bool, untold int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kept == nil {
		w.kept = make(map[subject]warned)
	}
	one, known := w.kept[about]
	if !known && len(w.kept) >= maxSubjects {
		w.forget(now)
		if len(w.kept) >= maxSubjects {
			about = others
			one, known = w.kept[about]
		}
	}
	if known && now.Sub(one.last) < warningPause {
		one.untold++
		w.kept[about] = one
		return false, 0
	}
	w.kept[about] = warned{last: now}
	return true, one.untold
}

// forget makes room of what was long ago.
func (w *warnings) forget(now time.Time) {
	untold := 0
	for about, one := range w.kept {
		if about != others && now.Sub(one.last) >= warningPause {
			untold += one.untold
			delete(w.kept, about)
		}
	}
	if one, known := w.kept[others]; known || untold > 0 {
		one.untold += untold
		w.kept[others] = one
	}
}

// rest is how much was not told.
func (w *warnings) rest() (untold int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.kept {
		untold += one.untold
	}
	w.kept = nil
	return untold
}

// Limited warns of what strangers do, once a minute for each host and class, with how many
// there were. It never waits for the logger.
type Limited struct {
	queue *Queue
	// prefix begins each message, and address is where the strangers came to.
	prefix, address string
	warnings        warnings
}

// NewLimited returns a Limited for those who come to an address. Nil logs nothing.
func NewLimited(logger *slog.Logger, prefix, address string) *Limited {
	return &Limited{queue: New(logger), prefix: prefix, address: address}
}

// Warn warns of an error of a class, of which there are a few. The peer is an address, or empty if
// the error is this side's.
func (l *Limited) Warn(message, class, peer string, err error) {
	host := peer
	if h, _, err := net.SplitHostPort(peer); err == nil {
		host = h
	}
	tell, untold := l.warnings.due(subject{class, host}, time.Now())
	if !tell {
		return
	}
	logger := l.queue.Logger().With("address", l.address)
	if peer != "" {
		logger = logger.With("peer", peer)
	}
	if untold > 0 {
		logger = logger.With("more like it", untold)
	}
	logger.Warn(l.prefix+message, "error", err)
}

// Close tells how much was not told, and ends as [Queue.Close] does.
func (l *Limited) Close() {
	if untold := l.warnings.rest(); untold > 0 {
		l.queue.Logger().Warn(l.prefix+"more of what was told happened", "address", l.address, "times", untold)
	}
	l.queue.Close()
}
