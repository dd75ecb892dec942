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

// watch has two goroutines wait for what the card tells: that completions have come, and what
// happens to it. They wait as Go waits for sockets, and take no thread.
type watch struct {
	device *device
	files  []*os.File
	gone   sync.WaitGroup
}

func (w *watch) open(d *device) error {
	w.device = d
	for fd, take := range map[int]func(){d.card.queueDescriptor(): w.takeQueueEvents, d.card.eventDescriptor(): w.takeEvents} {
		// A descriptor of its own: the library closes its.
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
			// It returns when the file is closed.
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

// takeQueueEvents has sleepers look. A queue is noted as not armed before they are looked for,
// and they are announced before they have it armed.
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
		w.device.bell.Ring()
	}
}

// takeEvents fails the queue pairs that the card says have failed. A port that goes down
// fails none: it may come back before the card has given the peers up.
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
			d.fail((*queuePair).desert, "the card reports an error of its completion queue", func(q *queuePair) bool { return q.sends.queue == e.queue || q.receives.queue == e.queue })
		case eventFatal:
			d.fail((*queuePair).desert, "the card has failed", func(*queuePair) bool { return true })
		case eventPortDown, eventPortUp:
			if e.port == d.port {
				d.door.teller.port(e.kind == eventPortUp)
			}
		}
	}
}

// fail ends queue pairs because of something that happened to the card.
func (d *device) fail(end func(*queuePair, error), why string, which func(q *queuePair) bool) {
	for _, q := range d.pairs.all() {
		if which(q) {
			end(q, fmt.Errorf("ibv: %s: queue pair %#x: %s%s", d.name, q.number, why, d.portText()))
		}
	}
}

// portDown tells that the port is not active now.
func (d *device) portDown() bool {
	p, err := d.card.port(d.port)
	return err == nil && p.state != portActive
}

// portText tells that the port is down, if it is.
func (d *device) portText() string {
	if d.portDown() {
		return fmt.Sprintf("; port %d is down", d.port)
	}
	return ""
}
