package logqueue

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// warningPause is the minimum time between logged warnings of one subject.
	warningPause = time.Minute
	// maxSubjects bounds the number of subjects that are distinguished.
	maxSubjects = 64
)

// A subject is what a warning is about. class is one of a few values. An unproven peer chooses neither class nor, while
// there are few hosts, host.
type subject struct{ class, host string }

// others is the subject of the warnings for which there is no room.
var others = subject{}

type warned struct {
	last time.Time
	// omitted counts the warnings since last that were not logged.
	omitted int
}

// warnings limit the warnings about peers without the key, which could otherwise fill a disk.
type warnings struct {
	mu   sync.Mutex
	kept map[subject]warned
}

// due reports whether to log a warning now, and how many of the same subject were omitted before it.
func (w *warnings) due(about subject, now time.Time) (log bool, omitted int) {
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
		one.omitted++
		w.kept[about] = one
		return false, 0
	}
	w.kept[about] = warned{last: now}
	return true, one.omitted
}

// forget removes subjects whose last warning was long ago.
func (w *warnings) forget(now time.Time) {
	omitted := 0
	for about, one := range w.kept {
		if about != others && now.Sub(one.last) >= warningPause {
			omitted += one.omitted
			delete(w.kept, about)
		}
	}
	if one, known := w.kept[others]; known || omitted > 0 {
		one.omitted += omitted
		w.kept[others] = one
	}
}

// rest returns the number of omitted warnings and resets it.
func (w *warnings) rest() (omitted int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.kept {
		omitted += one.omitted
	}
	w.kept = nil
	return omitted
}

// A Limited logs warnings about peers without the key: one per minute for each host and class, with the number of
// omitted ones. It never waits for the logger.
type Limited struct {
	queue *Queue
	// prefix begins each message. address is the address that the peers call.
	prefix, address string
	warnings        warnings
}

// NewLimited returns a Limited for the peers that call an address. A nil logger logs nothing.
func NewLimited(logger *slog.Logger, prefix, address string) *Limited {
	return &Limited{queue: New(logger), prefix: prefix, address: address}
}

// Warn logs an error of a class, of which there are a few. peer is an address, or empty if the error is this side's.
func (l *Limited) Warn(message, class, peer string, err error) {
	host := peer
	if h, _, err := net.SplitHostPort(peer); err == nil {
		host = h
	}
	due, omitted := l.warnings.due(subject{class, host}, time.Now())
	if !due {
		return
	}
	logger := l.queue.Logger().With("address", l.address)
	if peer != "" {
		logger = logger.With("peer", peer)
	}
	if omitted > 0 {
		logger = logger.With("more like it", omitted)
	}
	logger.Warn(l.prefix+message, "error", err)
}

// Close logs how many warnings were omitted, and then closes the queue as [Queue.Close] does.
func (l *Limited) Close() {
	if omitted := l.warnings.rest(); omitted > 0 {
		l.queue.Logger().Warn(l.prefix+"more warnings were omitted", "address", l.address, "times", omitted)
	}
	l.queue.Close()
}
