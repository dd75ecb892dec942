package job

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/verbs"
)

// A Link is this rank's way to a rank whose memory it does not map, or is not to use: a queue pair
// over which writes, reads and messages go, in order. Its methods may be called from
// any goroutine, but for those that say that they are for a Service.
//
// Requests are collected and posted together, when there are some of them or of
// their bytes, or when somebody waits. Of those for which nobody waits only every so
// many is signalled.
//
// Beside its queue pair a link takes an inbox of linkReceives letters, 256 KiB in a job of few
// ranks and 8 KiB in one of many, so that all of a rank's together take no more than linkInboxes
// up to 512 ranks; some 400 bytes for each request that has ever waited at once, of which
// there are seldom more than mostSends; and, once one of the ranks has looked for what the other
// writes (rings.go), 10.25 KiB for that on either side.
//
// # Invariants
//
//   - mu is never held while waiting, and progress is never driven under it; a
//     Service, which runs in progress, may take it. Nor is the mutex of progress taken
//     or given back under it: Engine.Unlock may poll.
//   - sequence numbers requests from 1. done is the last that is known to have
//     completed; what was before it has too. That the question is answered with which a
//     request ends tells it, too, unless the card may send again what has arrived.
//   - Answers come in the order of questions. At most mostAsked questions are open,
//     so what the other side has to keep for this one is bounded; a Service never
//     asks and never waits.
type Link struct {
	world *World
	rank  int
	card  *card
	inbox verbs.MemoryRegion
	// unwatch ends the watch of the rank, if the card has to be told to keep one.
	unwatch func()
	// mute tells that it carries no messages, and has no inbox.
	mute bool
	// gone is what that has told.
	gone atomic.Pointer[linkError]
	// crossing is a connection that the rank has made meanwhile, superseded the one that this
	// rank was making when it took the other's. dialed tells that this rank has begun to
	// connect, crossed that the other has too. They belong to progress.
	crossing        verbs.ConnectionRequest
	superseded      verbs.QueuePair
	dialed, crossed bool

	mu sync.Mutex
	// pair is another while the connection is tried again; it changes under the mutex of
	// progress too. up tells that it is made: nothing is posted before.
	pair verbs.QueuePair
	up   bool
	// requests[head:] are to be posted, with what their segments point to in
	// bodies.
	requests []verbs.SendRequest
	bodies   []body
	head     int
	// collected counts the operations and messages since all was posted, bytes theirs.
	collected, bytes int
	// unpolled is how many bytes were written since a writer has polled for that.
	unpolled int
	// sequence is that of the last request.
	sequence uint64
	// held is given back when the request with its number has completed.
	held      []holding
	firstHeld int
	// told tells that messages went since the last question. lastTold is the letter with
	// the last that a Service will serve in its turn, lastToldAt where in it, if no question
	// went since.
	told       bool
	lastTold   uint64
	lastToldAt int
	asked      uint64
	expected   *[mostAsked]expectation // made with the first question
	// signalled is the last request that is, lastRead the last that reads.
	signalled, lastRead uint64
	// expecting has the next request signalled.
	expecting bool
	// refusals are what the rank has refused. complaints are what messages of the rank
	// were refused for; they are told with the next answer, and belong to progress.
	refusals, complaints refusals
	// message is the one that is served, overtaking one that is before its turn. They
	// belong to progress.
	message, overtaking Message
	// serving tells that a letter is served, after which replies are posted.
	serving  atomic.Bool
	unserved unserved
	// letters is how many have come in one poll, that of the number heardIn. They belong to progress.
	letters int
	heardIn uint64
	// tryAgain is goOn.
	tryAgain func() bool
	// ending is why the queue pair has ended, of which nobody was told yet. It belongs to
	// progress.
	ending error

	counts   linkCounts
	ring     ring
	results  atomic.Pointer[results]
	staged   atomic.Pointer[staged]
	done     atomic.Uint64
	answered atomic.Uint64
	// stuck tells that requests wait for room in the send queue.
	stuck  atomic.Bool
	broken atomic.Pointer[linkError]
}

const (
	// mostCollected is how many requests, and burstBytes how many of their bytes, are
	// collected before they are posted.
	mostCollected = 32
	burstBytes    = 32 << 10
	// bytesAttended are about written in a microsecond.
	bytesAttended = 6 << 10
	// pollBytes is how much is written between polls.
	pollBytes = 1 << 20
	// A letter of a link is as long as lets the inboxes of links to all ranks take
	// linkInboxes bytes, but not longer nor shorter than these.
	linkInboxes        = 4 << 20
	longestLinkLetter  = 32 << 10
	shortestLinkLetter = 1 << 10
	// mostSends is how many may be outstanding.
	mostSends = 128
	// linkReceives are posted on each link.
	linkReceives = 8
	// every so many requests one is signalled, whatever is posted together.
	signalEvery = 32
	// mostAsked questions are open at once.
	mostAsked = 64
	// mostOwed is how many replies, and two for each rank of the job, may wait for
	// one that does not take them.
	mostOwed = 4 * mostSends
	// shortLetter is what goes as inline data where the device can.
	shortLetter = 256
)

// body is what the one segment of a request points to, if that is a short letter.
type body struct {
	letter  [shortLetter]byte
	segment [1]verbs.Segment
}

// expectation is where the answer to a question goes, the question's number as a
// request, and that of the last read before it.
type expectation struct {
	into               []byte
	receiver           Receiver
	sequence, lastRead uint64
}

// A Receiver takes the answer to a question. It is called in progress, once, and must not
// call the link.
type Receiver interface {
	// Answered is given the answer, which is valid until it returns, and tells whether
	// it is one.
	Answered(answer []byte) bool
	// Refused tells that there is none.
	Refused()
}

// holding is what is needed until a request has completed: a buffer of a pool, or a registration of the program's memory.
type holding struct {
	sequence uint64
	buffer   registration.Buffer
	hold     registration.Hold
}

type linkError struct{ err error }

// Linked is the link with a rank, nil if there is none.
func (w *World) Linked(rank int) *Link { return w.links[rank].Load() }

// Link is the way to rank, which is another. It is made at first use.
func (w *World) Link(rank int) (*Link, error) {
	if l := w.links[rank].Load(); l != nil {
		return l, nil
	}
	if rank == w.rank {
		return nil, fmt.Errorf("world: %w: a link of rank %d with itself", ErrArgument, rank)
	}
	if err := w.Failure(rank); err != nil {
		return nil, err
	}
	w.engine.Lock()
	defer w.engine.Unlock()
	if l := w.links[rank].Load(); l != nil {
		return l, nil
	}
	l := &Link{world: w, rank: rank, card: w.cardTo(rank)}
	err := l.open()
	if err == nil {
		if err = l.dial(); err != nil {
			err = errors.Join(w.blame(rank, err), l.shut())
		}
	}
	if err != nil {
		return nil, errtext.Errorf("world: connecting to rank %d: %w", rank, err)
	}
	w.links[rank].Store(l)
	l.greet()
	return l, nil
}

// linkLetter is how long letters of links are in a job of so many ranks, in bytes.
func linkLetter(size int) int {
	return min(max(linkInboxes/linkReceives/size&^1023, shortestLinkLetter), longestLinkLetter)
}

func (l *Link) config() verbs.QueuePairConfig {
	sends := mostSends
	if l.card.twice() {
		sends *= 2
	}
	return verbs.QueuePairConfig{SendQueue: l.card.queue, ReceiveQueue: l.card.queue, MaxSends: sends, MaxReceives: linkReceives}
}

// open makes place for what comes.
func (l *Link) open() (err error) {
	l.tryAgain = l.goOn
	l.ring = ringOf(l.card, l.rank)
	l.inbox, err = l.card.device.RegisterMemory(make([]byte, linkReceives*l.world.linkLetter), verbs.LocalWrite)
	if err == nil && l.card.watcher != nil {
		if l.unwatch, err = l.card.watcher.Watch(l.world.addressOf(l.rank), l.lost); err != nil {
			err = errors.Join(err, l.inbox.Deregister())
		}
	}
	return err
}

// lost is told of the end of the rank's card, by a goroutine of the device's.
func (l *Link) lost(cause error) {
	l.gone.Store(&linkError{cause})
	l.world.unseen.Store(true)
	l.world.engine.Wake()
}

// seeLost has the ranks fail whose cards are known to have ended, unless they have left. It is
// called with the mutex of progress.
func (w *World) seeLost() {
	w.unseen.Store(false)
	for _, w := range *w.worlds.Load() {
		for rank := range w.links {
			if l := w.links[rank].Load(); l != nil && !w.parted[rank].Load() {
				if gone := l.gone.Swap(nil); gone != nil {
					w.failed(rank, gone.err)
				}
			}
		}
	}
}

// failed has a rank fail that is gone, or whose connection has ended, after the ranks because of which it may have ended: see
// recordCauses.
func (w *World) failed(rank int, cause error) {
	if w.session != nil && w.Dialed() && w.Failure(rank) == nil {
		cause = w.session.lastWord(cause)
	}
	w.root.recordCauses(w.InJob(rank))
	w.roster.fail(rank, cause)
}

// shut takes back what open has made.
func (l *Link) shut() error {
	if l.unwatch != nil {
		l.unwatch()
	}
	if r := l.results.Load(); r != nil {
		clear(r.into[:])
		_ = r.region.Deregister()
	}
	if l.mute {
		return nil
	}
	return l.inbox.Deregister()
}

// accept makes the connection that the rank has asked for. It is called with the mutex
// of progress.
func (l *Link) accept(caller verbs.ConnectionRequest) error {
	if err := l.open(); err != nil {
		return err
	}
	pair, err := caller.Accept(l.config())
	if err == nil {
		err = l.own(pair)
	}
	if err != nil {
		return errors.Join(err, l.shut())
	}
	if err = l.begin(); err != nil {
		l.card.forget(pair.Number())
		l.close()
		return err
	}
	l.world.engine.StartBackground()
	return nil
}

// greet tells what the ranks that had links before were told. Whoever tells something
// new either finds the link, or has it told here.
func (l *Link) greet() {
	w := l.world
	l.tellFailures()
	if v := w.heardVerdict(w.ledger.number()); v != nil && (v.leaver != l.rank || v.shrinks) {
		l.tellVerdict(*v)
	}
	if w.left.Load() {
		l.Reply(&Message{Kind: kindLeft}, w.comeTo())
	}
}

// tellVerdict makes a verdict known to the rank.
func (l *Link) tellVerdict(v verdict) {
	m := Message{Kind: kindVerdict, X: uint64(v.number), Y: uint64(v.leaver + 1)}
	if v.shrinks {
		m.A = 1
	}
	l.Reply(&m, []byte(v.text[:min(len(v.text), maxVerdict)]))
}

// receiveID marks the IDs of receives.
const receiveID = 1 << 63

func (l *Link) slotMemory(slot int) []byte {
	n := l.world.linkLetter
	return l.inbox.Memory()[slot*n:][:n]
}

func (l *Link) receive(slot int) error {
	e := l.world.endpoint
	e.segment[0] = verbs.Segment{Memory: l.slotMemory(slot), LKey: l.inbox.LKey()}
	e.received[0] = verbs.ReceiveRequest{ID: receiveID | uint64(slot), Segments: e.segment[:]}
	_, err := l.pair.PostReceive(e.received[:])
	return err
}

// Rank is the rank that the link goes to.
func (l *Link) Rank() int { return l.rank }

// fault is why the link, or the rank at its end, cannot be used any more.
func (l *Link) fault() error {
	if b := l.broken.Load(); b != nil {
		if err := l.world.Failure(l.rank); err != nil {
			return err
		}
		if l.world.parted[l.rank].Load() {
			return l.world.LeftBy("", l.rank)
		}
		return &PeerError{Rank: l.rank, Cause: b.err}
	}
	return l.world.Failure(l.rank)
}

// fail ends the link. It is the failure of the rank, unless that has left or is this one, and
// recorded as that before anybody finds the link broken.
func (l *Link) fail(err error) {
	if l.broken.Load() != nil {
		return
	}
	if l.rank != l.world.rank && !l.world.parted[l.rank].Load() {
		l.world.failed(l.rank, err)
	}
	if !l.broken.CompareAndSwap(nil, &linkError{err}) {
		return
	}
	l.world.fallen.Store(true)
	l.world.engine.Wake()
}

// closeFallen frees what links have that were ended. It is called with the mutex of
// progress, when no completion of theirs is at hand.
func (w *World) closeFallen() {
	w.fallen.Store(false)
	for _, c := range w.cards {
		if c == nil {
			continue
		}
		for number, l := range inOrder(c.links) {
			if l.broken.Load() != nil {
				c.forget(number)
				l.close()
			}
		}
	}
}

// close frees what a link has that was ended.
func (l *Link) close() {
	l.refuse()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.superseded != nil {
		l.world.hangUp(l.rank, l.superseded)
	}
	l.world.hangUp(l.rank, l.pair)
	_ = l.shut()
	l.closeRing()
	l.giveBack(l.sequence)
	if s := l.staged.Load(); s != nil {
		s.abandon()
	}
	clear(l.bodies)
	clear(l.requests)
	if l.expected != nil {
		clear(l.expected[:])
	}
	l.requests, l.bodies, l.head, l.ring.stamped = l.requests[:0], l.bodies[:0], 0, 0
	l.ring.flagDue = false
}
