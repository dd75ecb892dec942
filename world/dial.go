package world

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/verbs"
)

// A connection that this rank makes is given nothing before it is there: one that cannot
// be made because this rank is short of what it takes, of descriptors say, is tried again,
// and nothing is lost. That is no news of the rank at its other end. But whoever waits is
// told of it, and may call again.

// lack notes that this rank was too short of something to connect to another.
func (w *World) lack(rank int, err error) {
	w.logger.Warn("cannot connect", "rank", rank, "why", err)
	w.shortage.Store(&linkError{fmt.Errorf("world: connecting to rank %d: %w", rank, err)})
}

// dial begins the connection of a link. It is called with the mutex of progress.
func (l *Link) dial() error {
	w := l.world
	pair, err := l.card.device.Connect(w.routes[l.rank].address, hello(laneLink, w.rank), l.config())
	if err != nil {
		return err
	}
	if err := w.lines.add(l.rank, pair); err != nil {
		return errors.Join(err, pair.Close())
	}
	l.mu.Lock()
	l.pair = pair
	l.mu.Unlock()
	l.card.links[pair.Number()] = l
	w.dialing = append(w.dialing, l)
	w.drive()
	return nil
}

// rise begins to use the links that have been made, and tells how many. It is called with
// the mutex of progress, when no completion is at hand.
func (w *World) rise() int {
	rising, n := w.dialing, 0
	w.dialing = nil
	for i, l := range rising {
		rising[i] = nil
		if l.rise() {
			n++
		}
	}
	return n
}

// rise begins to use a link if it has been made, and tells whether.
func (l *Link) rise() bool {
	w := l.world
	if l.broken.Load() != nil {
		return false
	}
	switch l.pair.State() {
	case verbs.StateConnecting:
		w.dialing = append(w.dialing, l)
		return false
	case verbs.StateReady:
		if err := l.begin(); err != nil {
			l.fail(err)
			return false
		}
		return true
	}
	err := l.pair.Err()
	if errors.Is(err, verbs.ErrShortage) {
		w.lack(l.rank, err)
		delete(l.card.links, l.pair.Number())
		w.lines.remove(l.rank, l.pair)
		_ = l.pair.Close()
		if err = l.dial(); err == nil {
			return false
		}
		// So that it is closed like others.
		l.card.links[l.pair.Number()] = l
	}
	l.ends(err)
	return false
}

// begin posts the receives of a link and lets requests go.
func (l *Link) begin() error {
	for slot := range linkReceives {
		if err := l.receive(slot); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = true
	l.post(false)
	return nil
}

// dial begins the connection to the rank of a mailbox.
func (o *office) dial(box *mailbox) error {
	w := o.world
	to := &w.routes[box.rank]
	out, err := to.card.device.Connect(to.address, hello(laneLetters, w.rank), o.config(to.card))
	if err != nil {
		return err
	}
	if err := w.lines.add(box.rank, out); err != nil {
		return &boxError{box.rank, errors.Join(err, out.Close())}
	}
	box.out = out
	return nil
}

// dispatch posts the letters to a rank that wait for the connection.
func (o *office) dispatch(box *mailbox) error {
	for len(box.waiting) > 0 {
		switch box.out.State() {
		case verbs.StateConnecting:
			return nil
		case verbs.StateError:
			err := box.out.Err()
			if !errors.Is(err, verbs.ErrShortage) {
				return &boxError{box.rank, err}
			}
			o.world.lack(box.rank, err)
			o.world.lines.remove(box.rank, box.out)
			_ = box.out.Close()
			if err := o.dial(box); err != nil {
				return err
			}
			continue
		}
		l := box.waiting[0]
		memory := o.outbox.Memory()[l.slot*o.letter:][:l.length]
		o.segment[0] = verbs.Segment{Memory: memory, LKey: o.outbox.lkey(o.world.routes[box.rank].card.kind)}
		o.request[0] = verbs.SendRequest{ID: uint64(box.rank)<<32 | uint64(l.slot), Opcode: verbs.OpSend, Flags: verbs.Signalled, Segments: o.segment[:]}
		posted, err := box.out.PostSend(o.request[:])
		if errors.Is(err, verbs.ErrQueueFull) {
			return nil
		}
		if posted == 0 {
			return &boxError{box.rank, err}
		}
		box.waiting = slices.Delete(box.waiting, 0, 1)
		box.posted = append(box.posted, l.slot)
		o.waiting--
	}
	return nil
}

// dispatchAll posts the letters that wait for connections which have been made.
func (o *office) dispatchAll() {
	for _, box := range o.boxes {
		if len(box.waiting) == 0 {
			continue
		}
		if err := o.dispatch(box); err != nil {
			o.giveUp(box, err)
		}
	}
}

// giveUp has the letters to a rank lost.
func (o *office) giveUp(box *mailbox, err error) {
	if box.err == nil {
		box.err = err
	}
	for _, l := range box.waiting {
		o.free = append(o.free, l.slot)
	}
	box.sent -= len(box.waiting)
	o.waiting -= len(box.waiting)
	box.waiting = nil
}
