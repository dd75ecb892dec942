package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A connection is for one of two things.
const (
	// laneLink is a Link.
	laneLink byte = iota
	// laneMute is a link that carries no messages.
	laneMute
)

// helloBytes is the length of a hello.
const helloBytes = 9

// hello is what a rank says when it connects: a lane, its number, and the context of the
// World in which it has that.
func hello(lane byte, rank int, context uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32([]byte{lane}, uint32(rank)), context)
}

// connectedAlready is why a second connection of a kind is refused.
func connectedAlready(rank int) error {
	return fmt.Errorf("rank %d is connected already: another process says that it is rank %[1]d, too", rank)
}

// accept makes the incoming connection of the rank that a hello names.
func (w *World) accept(c *card, caller verbs.ConnectionRequest) {
	hello := caller.Hello()
	if len(hello) != helloBytes || hello[0] > laneMute {
		caller.Reject(fmt.Sprintf("a hello of %s names no rank", errtext.Count(len(hello), "byte")))
		return
	}
	rank, context := int(binary.LittleEndian.Uint32(hello[1:])), binary.LittleEndian.Uint32(hello[5:])
	if w = w.inContext(context); w == nil {
		caller.Reject("the team is closed here")
		return
	}
	if rank < 0 || rank >= w.size {
		caller.Reject(fmt.Sprintf("the job has no rank %d", rank))
		return
	}
	if rank == w.rank && (hello[0] != laneMute || w.cardLinks[rank].Load() == nil) {
		caller.Reject(fmt.Sprintf("this is rank %d", rank))
		return
	}
	if err := w.Failure(rank); err != nil {
		// Who was stopped may not know that the others go on without it.
		caller.Reject(err.Error())
		return
	}
	accept := w.acceptLink
	if hello[0] == laneMute {
		accept = w.acceptMute
	}
	w.acceptSoon(rank, caller, func() error { return accept(c, rank, caller) }, func(err error) {
		if err != nil {
			w.logger.Warn("a connection could not be accepted", "rank", rank, "why", err)
			caller.Reject(err.Error())
		}
	})
}

// acceptLink makes a connection that of the link with a rank.
func (w *World) acceptLink(c *card, rank int, caller verbs.ConnectionRequest) error {
	if l := w.links[rank].Load(); l != nil {
		return l.meet(caller)
	}
	l := &Link{world: w, rank: rank, card: c}
	if err := l.accept(caller); err != nil {
		return err
	}
	w.links[rank].Store(l)
	l.greet()
	return nil
}

// What this rank is short of to accept a connection it looks for every acceptPause, and
// tells who waits every acceptNotice.
const (
	acceptPause  = 10 * time.Millisecond
	acceptNotice = time.Second
)

// acceptSoon has a connection accepted at once, or as soon as this rank has what that takes,
// and tells how it ended.
func (w *World) acceptSoon(rank int, caller verbs.ConnectionRequest, accept func() error, ended func(error)) {
	err := accept()
	if !errors.Is(err, verbs.ErrShortage) {
		ended(err)
		return
	}
	w.lack(rank, err)
	last := w.Now()
	told := last
	w.engine.Retry(func() bool {
		now := w.Now()
		if now-last < acceptPause {
			return false
		}
		last = now
		if err := w.Failure(rank); err != nil {
			caller.Reject(err.Error())
			return true
		}
		err := accept()
		if !errors.Is(err, verbs.ErrShortage) {
			ended(err)
			return true
		}
		if now-told >= acceptNotice {
			told = now
			w.lack(rank, err)
		}
		return false
	})
}
