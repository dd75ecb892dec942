package logqueue

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Most is the maximum number of records that wait for the logger.
	Most = 64
	// parting is the time between two looks of Close at the logger, at most partings. A logger that has not been called
	// again in this time blocks.
	parting  = 250 * time.Millisecond
	partings = 8
)

// A Queue passes records to a logger that may block.
type Queue struct {
	// own is the handler for the queue's own records.
	own slog.Handler

	mu      sync.Mutex
	waiting []entry
	dropped int
	// begun counts the calls of the logger.
	begun  int
	closed bool
	// idle is nil while there is no goroutine. It is closed when the goroutine ends.
	idle chan struct{}
}

type entry struct {
	ctx     context.Context
	handler slog.Handler
	record  slog.Record
}

// New returns a queue to a logger. A nil logger logs nothing.
func New(logger *slog.Logger) *Queue {
	if logger == nil {
		return &Queue{own: slog.DiscardHandler}
	}
	return &Queue{own: logger.Handler()}
}

// Logger returns the logger that writes to the queue.
func (q *Queue) Logger() *slog.Logger {
	if q.own == slog.DiscardHandler {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&handler{queue: q, Handler: q.own})
}

// Close waits until the logger has all records. It waits for at most half a second if the logger blocks, and for two
// seconds if the logger is slow. Then it drops the records that wait. Later records are ignored.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	idle, begun := q.idle, q.begun
	q.mu.Unlock()
	if idle == nil {
		return
	}
	ticker := time.NewTicker(parting)
	defer ticker.Stop()
	for range partings {
		select {
		case <-idle:
			return
		case <-ticker.C:
		}
		q.mu.Lock()
		blocks := q.begun == begun
		begun = q.begun
		q.mu.Unlock()
		if blocks {
			break
		}
	}
	q.drop()
}

// drop drops the records that wait. If the logger returns, it gets their number.
func (q *Queue) drop() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropped += len(q.waiting)
	q.waiting = nil
}

func (q *Queue) add(e entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return
	case len(q.waiting) == Most:
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, e)
	if q.idle == nil {
		q.idle = make(chan struct{})
		go q.drain()
	}
}

// drain passes records to the logger until none waits.
func (q *Queue) drain() {
	for {
		e, ok := q.next()
		if !ok {
			return
		}
		if e.handler.Enabled(e.ctx, e.record.Level) {
			_ = e.handler.Handle(e.ctx, e.record)
		}
	}
}

func (q *Queue) next() (e entry, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.waiting) > 0:
		e, q.waiting[0] = q.waiting[0], entry{}
		q.waiting = q.waiting[1:]
	case q.dropped > 0:
		e = entry{context.Background(), q.own, slog.NewRecord(time.Now(), slog.LevelWarn, "records were dropped, because the logger is too slow", 0)}
		e.record.AddAttrs(slog.Int("dropped", q.dropped))
		q.dropped = 0
	default:
		q.waiting = nil
		close(q.idle)
		q.idle = nil
		return entry{}, false
	}
	q.begun++
	return e, true
}

// handler puts records in the queue. It calls no method of the logger's handler that may block.
type handler struct {
	slog.Handler
	queue *Queue
}

// Enabled returns true, because the Enabled of the logger's handler may block.
func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	h.queue.add(entry{context.WithoutCancel(ctx), h.Handler, record.Clone()})
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.queue}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.queue}
}
