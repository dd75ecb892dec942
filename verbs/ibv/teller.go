//go:build ibverbs && cgo && linux

package ibv

import (
	"sync"
	"time"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/verbs"
)

// tellPause is after how long the Logger is told of failures of the same class again:
// strangers could fill a disk with theirs.
const tellPause = time.Minute

// teller tells the Logger, which may block, of what happens at the door and to the port, and what
// the card costs.
type teller struct {
	queue   *logqueue.Queue
	address string

	mu   sync.Mutex
	told map[string]*told
}

type told struct {
	last time.Time
	// more is how often it has happened since.
	more int
}

// warn tells that a connection was refused. There are few classes.
func (t *teller) warn(class string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, known := t.told[class]
	if known && time.Since(one.last) < tellPause {
		one.more++
		return
	}
	if !known {
		one = new(told)
		t.told[class] = one
	}
	logger := t.queue.Logger().With("address", t.address)
	if one.more > 0 {
		logger = logger.With("more like it", one.more)
	}
	logger.Warn("ibv: connection refused", "error", err)
	one.last, one.more = time.Now(), 0
}

// port tells that the port has come up or gone down.
func (t *teller) port(up bool) {
	if up {
		t.queue.Logger().Info("ibv: the port is active", "address", t.address)
		return
	}
	t.queue.Logger().Warn("ibv: the port is down", "address", t.address)
}

// calibrated tells what the card costs, and why that was not measured, if it was not.
func (t *teller) calibrated(c *verbs.Costs, err error) {
	if err != nil {
		t.queue.Logger().Info("ibv: the card's costs were not measured and are taken to be as usual", "address", t.address, "error", err)
		return
	}
	t.queue.Logger().Debug("ibv: the card's costs were measured", "address", t.address, "gap", c.Gap, "latency", c.Latency, "read", c.ReadLatency,
		"message", c.Serve, "bandwidth", c.Bandwidth)
}

func (t *teller) close() { t.queue.Close() }
