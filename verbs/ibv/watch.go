//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

type eventKind uint8

const (
	eventOther eventKind = iota
	eventPair
	eventQueue
	eventPortDown
	eventPortUp
	eventFatal
)

// watch has two goroutines that wait for the card's reports: one for completions, one for asynchronous events. They
// wait in Go's poller, as for sockets, and block no thread.
type watch struct {
	device *device
	files  []*os.File
	gone   sync.WaitGroup
}

func (w *watch) open(d *device) error {
	w.device = d
	for fd, take := range map[int]func(){d.card.queueDescriptor(): w.takeQueueEvents, d.card.eventDescriptor(): w.takeEvents} {
		// A duplicate, because the library closes its own descriptor.
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			w.close()
			return fmt.Errorf("ibv: %s: %w", d.name, err)
		}
		file := os.NewFile(uintptr(own), "ibv events")
		raw, err := file.SyscallConn()
		if err != nil {
			_ = file.Close()
			w.close()
			return fmt.Errorf("ibv: %s: %w", d.name, err)
		}
		w.files = append(w.files, file)
		w.gone.Go(func() {
			// Read returns when the file is closed.
			_ = raw.Read(func(uintptr) bool { take(); return false })
		})
	}
	return nil
}

// close ends the goroutines.
func (w *watch) close() {
	for _, file := range w.files {
		_ = file.Close()
	}
	w.gone.Wait()
}

// takeQueueEvents wakes the sleepers. It stores that a queue is not armed before it loads the sleepers. A sleeper's
// announcement precedes its arming; so one sees the other.
func (w *watch) takeQueueEvents() {
	for {
		q, ok := w.device.card.queueEvent()
		if !ok {
			return
		}
		for _, c := range *w.device.queues.Load() {
			if c.queue == q {
				c.armed.Store(false)
			}
		}
		w.device.channel.Wake()
	}
}

// takeEvents fails the queue pairs that the card reports as failed. A port that goes down fails none, because it may
// come back before the card has given the peers up.
func (w *watch) takeEvents() {
	d := w.device
	for {
		e, ok := d.card.event()
		if !ok {
			return
		}
		switch e.kind {
		case eventPair:
			d.fail((*queuePair).lose, "the card reports an error of the queue pair", func(q *queuePair) bool { return q.number == e.pair })
		case eventQueue:
			d.fail((*queuePair).abandonCard, "the card reports an error of its completion queue", func(q *queuePair) bool { return q.sends.queue == e.queue || q.receives.queue == e.queue })
		case eventFatal:
			d.fail((*queuePair).abandonCard, "the card has failed", func(*queuePair) bool { return true })
		case eventPortDown, eventPortUp:
			if e.port == d.port {
				d.connectionManager.eventLog.port(e.kind == eventPortUp)
			}
		}
	}
}

// fail ends queue pairs because of an event of the card.
func (d *device) fail(end func(*queuePair, error), why string, which func(q *queuePair) bool) {
	for _, q := range d.pairs.all() {
		if which(q) {
			end(q, fmt.Errorf("ibv: %s: queue pair %#x: %s%s", d.name, q.number, why, d.portText()))
		}
	}
}

// portDown reports whether the port is not active now.
func (d *device) portDown() bool {
	p, err := d.card.port(d.port)
	return err == nil && p.state != portActive
}

// portText returns a text if the port is down.
func (d *device) portText() string {
	if d.portDown() {
		return fmt.Sprintf("; port %d is down", d.port)
	}
	return ""
}
