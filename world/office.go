package world

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// office sends and receives the messages of collectives, each to a rank and in the
// order in which they were sent to it. A rank sends to another over the connection
// that it has made to it itself, so two that start at once need not agree on one.
//
// A message goes in letters of at most a few kilobytes, copied through registered
// memory on both sides. A connection has receives for inboxLetters posted; one is
// posted again when its letter has been taken, so a sender that is ahead is held
// back by the device. That, 32 KiB or in a large world 8, is what a connection takes
// here beside the device's own.
type office struct {
	world  *World
	letter int

	// mu is that of progress.
	mu *sync.Mutex
	// lingering: somebody sees to connections that are being made.
	lingering bool
	outbox    *Region
	free      []int
	boxes     map[int]*mailbox
	polled    [16]verbs.Completion
	request   [1]verbs.SendRequest
	receive   [1]verbs.ReceiveRequest
	segment   [1]verbs.Segment
	callers   [4]verbs.ConnectionRequest
}

// mailbox is the connections with one rank.
type mailbox struct {
	office *office
	rank   int
	// out is the connection that this rank has made, in the one that it accepted.
	out, in verbs.QueuePair
	inbox   verbs.MemoryRegion
	// letters have come and are not taken yet: slots of inbox and lengths.
	letters []letter
	// waiting are letters to the rank that have not been posted: slots of the outbox.
	waiting []letter
	// sent counts letters to the rank that it has not received, posted are those that were
	// posted of them: slots of the outbox.
	sent   int
	posted []int
	err    error
}

type letter struct{ slot, length int }

const (
	// largeWorld is the size from which on letters are smaller, because the ranks
	// have so many connections together.
	largeWorld       = 64
	letterBytes      = 4096
	smallLetterBytes = 1024
	inboxLetters     = 8
	outboxLetters    = 8
)

// letterBytes is the length of a letter, the same on every rank.
func (w *World) letterBytes() int {
	if w.size > largeWorld {
		return smallLetterBytes
	}
	return letterBytes
}

func (o *office) open(w *World) error {
	o.world, o.letter = w, w.letterBytes()
	o.boxes = make(map[int]*mailbox)
	var err error
	if o.outbox, err = register(&w.cards, make([]byte, outboxLetters*o.letter), 0); err != nil {
		return err
	}
	for slot := range outboxLetters {
		o.free = append(o.free, slot)
	}
	return nil
}

// accept makes the incoming connection of rank.
func (o *office) accept(c *card, rank int, caller verbs.ConnectionRequest) {
	box := o.box(rank)
	if box.in != nil {
		caller.Reject(connectedAlready(rank).Error())
		return
	}
	o.world.acceptSoon(rank, caller, func() error { return o.acceptInto(c, box, caller) }, func(err error) { o.accepted(box, caller, err) })
}

// accepted files how it ended that a connection was accepted.
func (o *office) accepted(box *mailbox, caller verbs.ConnectionRequest, err error) {
	if err == nil {
		return
	}
	lost := err
	if !errors.Is(err, verbs.ErrPeerGone) {
		o.world.logger.Warn("a connection could not be accepted", "rank", box.rank, "why", err)
		// What the rank sends will not come, which is no fault of its own.
		lost = &acceptError{box.rank, err}
	}
	// A rank that has ended is not made a failed one here: it may have left, and nobody
	// need what it was about to send. Who does need it finds this.
	if box.err == nil {
		box.err = lost
	}
	caller.Reject(err.Error())
}

// acceptError is why this rank could not accept a connection of another.
type acceptError struct {
	rank  int
	cause error
}

func (e *acceptError) Error() string {
	return fmt.Sprintf("accepting a connection of rank %d: %v", e.rank, e.cause)
}
func (e *acceptError) Unwrap() error { return e.cause }

func (o *office) acceptInto(c *card, box *mailbox, caller verbs.ConnectionRequest) error {
	inbox, err := c.device.RegisterMemory(make([]byte, inboxLetters*o.letter), verbs.LocalWrite)
	if err != nil {
		return err
	}
	in, err := caller.Accept(o.config(c))
	if err != nil {
		return errors.Join(err, inbox.Deregister())
	}
	if err := o.world.lines.add(box.rank, in); err != nil {
		return errors.Join(err, in.Close(), inbox.Deregister())
	}
	box.in, box.inbox = in, inbox
	c.boxes[in.Number()] = box
	for slot := range inboxLetters {
		if err := o.postReceive(box, slot); err != nil {
			return err
		}
	}
	return nil
}

func (o *office) config(c *card) verbs.QueuePairConfig {
	return verbs.QueuePairConfig{SendQueue: c.queue, ReceiveQueue: c.queue, MaxSends: outboxLetters, MaxReceives: inboxLetters}
}

func (o *office) postReceive(box *mailbox, slot int) error {
	memory := box.inbox.Memory()[slot*o.letter:][:o.letter]
	o.segment[0] = verbs.Segment{Memory: memory, LKey: box.inbox.LKey()}
	o.receive[0] = verbs.ReceiveRequest{ID: uint64(slot), Segments: o.segment[:]}
	_, err := box.in.PostReceive(o.receive[:])
	return err
}

func (o *office) box(rank int) *mailbox {
	box := o.boxes[rank]
	if box == nil {
		box = &mailbox{office: o, rank: rank}
		o.boxes[rank] = box
	}
	return box
}

// sentLetter marks the IDs of sends, which are slots of the outbox beside.
const sentLetter = 1 << 63

// completed files a completion of one of the connections with a rank.
func (o *office) completed(box *mailbox, c *verbs.Completion) {
	if c.ID&sentLetter == 0 {
		switch {
		case c.Status == verbs.StatusSuccess:
			box.letters = append(box.letters, letter{int(c.ID), int(c.Bytes)})
		case box.err == nil:
			box.err = brokenBy(c, box.in)
		}
		return
	}
	o.giveBack(box, slices.Index(box.posted, int(uint32(c.ID))))
	if c.Status == verbs.StatusSuccess {
		return
	}
	if box.err == nil {
		box.err = brokenBy(c, box.out)
	}
	if errors.Is(box.out.Err(), verbs.ErrQueueFull) {
		// The queue overflowed: of the others nothing will be heard.
		for len(box.posted) > 0 {
			o.giveBack(box, 0)
		}
	}
}

// giveBack lets go of one of the letters that were posted to a rank, if there is that one.
func (o *office) giveBack(box *mailbox, which int) {
	if which < 0 {
		return
	}
	o.free = append(o.free, box.posted[which])
	box.posted = slices.Delete(box.posted, which, which+1)
	box.sent--
}

func (o *office) letterOf(box *mailbox, l letter) []byte {
	return box.inbox.Memory()[l.slot*o.letter:][:min(l.length, o.letter)]
}

// drain waits until every letter has been received, but by ranks that have failed
// or left.
func (o *office) drain() {
	wait := o.world.NewWaiter()
	defer wait.Finish()
	for {
		rank := o.undrained()
		if rank < 0 {
			return
		}
		if !o.world.Mapped(rank) {
			o.world.attend(rank)
		}
		if wait.Pause(context.Background()) != nil {
			// There is no connection to be had for what is left.
			return
		}
	}
}

// undrained is a rank that letters are on their way to, -1 if there is none.
func (o *office) undrained() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.world.poll()
	for rank, box := range inOrder(o.boxes) {
		// What comes for a rank that closes is not taken any more.
		for _, l := range box.letters {
			_ = o.postReceive(box, l.slot)
		}
		box.letters = box.letters[:0]
		if box.sent == 0 || o.world.Failure(rank) != nil {
			continue
		}
		if _, left := o.world.barrier.left(rank); !left {
			return rank
		}
	}
	return -1
}

// linger sees to it that a letter leaves that waits for its connection to be made, also
// if this rank does nothing of the World's for long. Where there is a driver it does.
func (o *office) linger(rank int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.world
	if w.driving || o.lingering || !o.box(rank).connecting() {
		return
	}
	o.lingering = true
	w.driver.Go(func() {
		for pause := shortestRetry; !w.stopped.Load() && o.connecting(); pause = min(2*pause, longestRetry) {
			time.Sleep(pause)
		}
	})
}

// connecting makes progress and tells whether it has to go on until a letter has left.
func (o *office) connecting() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.world.poll()
	for _, box := range inOrder(o.boxes) {
		if box.connecting() && o.world.Failure(box.rank) == nil {
			return true
		}
	}
	o.lingering = false
	return false
}

func (b *mailbox) connecting() bool {
	return len(b.waiting) > 0
}
