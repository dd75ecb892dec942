//go:build ibverbs && cgo && linux

package ibv

import (
	"sync"
	"time"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/verbs"
)

// logPause is the time between two log messages of failures of one class. Otherwise unproven peers could fill a disk.
const logPause = time.Minute

// eventLog logs connections, the state of the port, and the costs of the card. The Logger may block.
type eventLog struct {
	queue   *logqueue.Queue
	address string

	mu       sync.Mutex
	failures map[string]*failures
}

type failures struct {
	last time.Time
	// more is the number of failures since then.
	more int
}

// warn logs a rejected connection. There are few classes.
func (l *eventLog) warn(class string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, known := l.failures[class]
	if known && time.Since(one.last) < logPause {
		one.more++
		return
	}
	if !known {
		one = new(failures)
		l.failures[class] = one
	}
	logger := l.queue.Logger().With("address", l.address)
	if one.more > 0 {
		logger = logger.With("more like it", one.more)
	}
	logger.Warn("ibv: connection rejected", "error", err)
	one.last, one.more = time.Now(), 0
}

// port logs that the port has come up or gone down.
func (l *eventLog) port(up bool) {
	if up {
		l.queue.Logger().Info("ibv: the port is active", "address", l.address)
		return
	}
	l.queue.Logger().Warn("ibv: the port is down", "address", l.address)
}

// calibrated logs the costs of the card, and the error if they were not measured.
func (l *eventLog) calibrated(c *verbs.Costs, err error) {
	if err != nil {
		l.queue.Logger().Info("ibv: the card's costs were not measured and are taken to be as usual", "address", l.address, "error", err)
		return
	}
	l.queue.Logger().Debug("ibv: the card's costs were measured", "address", l.address, "gap", c.Gap, "latency", c.Latency, "read", c.ReadLatency,
		"message", c.Serve, "bandwidth", c.Bandwidth)
}

func (l *eventLog) close() { l.queue.Close() }
