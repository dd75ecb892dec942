package job

import (
	"errors"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A connection that this rank makes is given nothing before it is there: one that cannot
// be made because this rank is short of what it takes, of descriptors say, is tried again,
// and nothing is lost. That is no news of the rank at its other end. But whoever waits is
// told of it, and may call again.

// lack notes that this rank was too short of something to connect to another.
func (w *World) lack(rank int, err error) {
	w.logger.Warn("cannot connect", "rank", rank, "why", err)
	w.engine.Interrupt(errtext.Errorf("world: connecting to rank %d: %w", rank, err))
}

// dial begins the connection of a link. It is called with the mutex of progress.
func (l *Link) dial() error {
	w := l.world
	pair, err := l.card.device.Connect(w.job.contacts[l.rank].addresses[l.card.kind], hello(l.lane(), w.rank, w.context), l.config())
	if err != nil {
		return err
	}
	if err := l.own(pair); err != nil {
		return err
	}
	l.dialed = true
	w.dialing = append(w.dialing, l)
	w.engine.StartBackground()
	return nil
}

// lane is what its connection is for.
func (l *Link) lane() byte {
	if l.mute {
		return laneMute
	}
	return laneLink
}

// own makes a queue pair that of the link, and closes the one that was, or, while that is
// being made, leaves it to dismiss: the other side is to refuse it, not to lose it.
func (l *Link) own(pair verbs.QueuePair) error {
	if err := l.world.lines.add(l.rank, pair); err != nil {
		return errors.Join(err, pair.Close())
	}
	l.mu.Lock()
	before := l.pair
	l.pair = pair
	l.mu.Unlock()
	if before != nil {
		l.card.forget(before.Number())
		l.superseded = before
		l.dismiss()
	}
	l.card.links[pair.Number()] = l
	return nil
}

// dismiss closes the queue pair in whose place the link has another, and tells whether it
// has: not while it is being made.
func (l *Link) dismiss() bool {
	before := l.superseded
	if before == nil {
		return true
	}
	if before.State() == verbs.StateConnecting {
		return false
	}
	l.superseded = nil
	l.world.hangUp(l.rank, before)
	return true
}

// Two ranks have one link between them, whoever makes it, so that what one sends and what
// it answers share letters, and whoever waits has one connection to look at. If both connect
// at once the connection of the lower rank is the link's: the higher takes it in the place
// of its own, and the lower refuses the other's, when its own has been made. But if it is too
// short of something to make one, which the other has not heard of then, it takes the other's.

// meet makes the connection that a rank has asked for that of its link, which this rank has
// begun to make too, now or perhaps later. Once a rank may have begun before it heard of this
// rank's; whoever comes again is another. It is called with the mutex of progress.
func (l *Link) meet(caller verbs.ConnectionRequest) error {
	ended := l.ending != nil || l.broken.Load() != nil
	switch {
	case l.rank > l.world.rank && l.dialed && !l.crossed:
		l.crossed, l.crossing = true, caller
		if l.up || ended {
			l.refuse()
		}
		return nil
	case ended || l.up || l.rank > l.world.rank || l.pair.State() == verbs.StateReady:
		return connectedAlready(l.rank)
	}
	return l.adopt(caller)
}

// adopt makes a connection that the rank has asked for that of its link.
func (l *Link) adopt(caller verbs.ConnectionRequest) error {
	pair, err := caller.Accept(l.config())
	if err == nil {
		err = l.own(pair)
	}
	if err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		l.fail(err)
	}
	return nil
}

// refuse refuses the connection that the rank has made meanwhile.
func (l *Link) refuse() {
	if l.crossing != nil {
		l.crossing.Reject(connectedAlready(l.rank).Error())
		l.crossing = nil
	}
}

// rise begins to use the links that have been made, and tells how many. It is called with
// the mutex of progress, when no completion is at hand.
func (w *World) rise() int {
	rising, n := w.dialing, 0
	w.dialing = rising[:0]
	for _, l := range rising {
		// It is in the list again, behind nobody that has not had its turn, or not at all.
		if l.rise() {
			n++
		}
	}
	clear(rising[len(w.dialing):])
	return n
}

// rise begins to use a link if it has been made, and tells whether.
func (l *Link) rise() bool {
	w := l.world
	if l.broken.Load() != nil {
		return false
	}
	if l.up {
		if !l.dismiss() {
			w.dialing = append(w.dialing, l)
		}
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
		l.refuse()
		return true
	}
	err := l.pair.Err()
	if l.crossing != nil && !errors.Is(err, verbs.ErrPeerGone) && !errors.Is(err, verbs.ErrRejected) && l.adopt(l.crossing) == nil {
		// This side lacks something, a route perhaps, and the other does not.
		l.crossing = nil
		return true
	}
	if errors.Is(err, verbs.ErrShortage) {
		w.lack(l.rank, err)
		if err = l.dial(); err == nil {
			return false
		}
	}
	w.notInTeam(l.rank, err)
	l.ends(err)
	return false
}

// begin posts the receives of a link and lets requests go.
func (l *Link) begin() error {
	for slot := range linkReceives {
		if l.mute {
			break
		}
		if err := l.receive(slot); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = true
	if r := l.card.rings; r != nil && !l.mute {
		r.add(l)
	}
	l.post(false)
	return nil
}
