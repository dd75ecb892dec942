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
func (t *eventLog) warn(class string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.failures[class]
	if known && time.Since(one.last) < logPause {
		one.more++
		return
	}
	if !known {
		one = new(failures)
		t.failures[class] = one
	}
	logger := t.queue.Logger().With("address", t.address)
	if one.more > 0 {
		logger = logger.With("more like it", one.more)
	}
	logger.Warn("ibv: connection rejected", "error", err)
	one.last, one.more = time.Now(), 0
}

// port logs that the port has come up or gone down.
func (t *eventLog) port(up bool) {
	if up {
		t.queue.Logger().Info("ibv: the port is active", "address", t.address)
		return
	}
	t.queue.Logger().Warn("ibv: the port is down", "address", t.address)
}

// calibrated logs the costs of the card, and the error if they were not measured.
func (t *eventLog) calibrated(c *verbs.Costs, err error) {
	if err != nil {
		t.queue.Logger().Info("ibv: the card's costs were not measured and are taken to be as usual", "address", t.address, "error", err)
		return
	}
	t.queue.Logger().Debug("ibv: the card's costs were measured", "address", t.address, "gap", c.Gap, "latency", c.Latency, "read", c.ReadLatency,
		"message", c.Serve, "bandwidth", c.Bandwidth)
}

func (t *eventLog) close() { t.queue.Close() }
