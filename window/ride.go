package window

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// Lock and post requests are piggybacked on the first data message to a rank that is reached by messages.
//
// Lock only records that a lock is wanted. The first call that sends operations to the target also requests the lock,
// in the same message if they fit. If Unlock finds the lock still wanted, the message releases the lock, too. The
// target grants the lock when it has applied the operations, and its response is part of the grant.
//
// Start only records that the target has to post. If Complete does not know of the post yet, it sends the operations
// all the same, in one message if they fit. The target applies them when it has posted.
//
// Invariants:
//
//   - A lock is wanted only if the rank has no other lock on any window. A call that needs another lock acquires the
//     wanted one first. So locks are acquired in the order of the calls. A goroutine that waits for a lock that another
//     goroutine wants holds none.
//   - The target keeps a piggybacked packet until its time. Of each rank it keeps at most one packet of a lock request
//     and one of a Complete. While a lock is requested and not granted, or a post has not arrived, only the packet of a
//     Complete leaves the queue.
//   - The next access epoch to a target begins when its post for the last was heard of.
//   - An Unlock that is interrupted leaves hold as far as it has come, and the next continues from there: see leave. So the
//     target is asked for the lock once, and given it back once.
//   - Nobody waits for a lock or a post with the mutex of a queue, nor in progress.

// hold is the state of the lock of a queue's target.
type hold uint8

const (
	// settled: this rank has the lock, or there is none.
	settled hold = iota
	// returned: an Unlock has given it back by a message of its own, and waits for the operations.
	returned
	// wanted: the target does not know yet.
	wanted
	// asked: the lock has been requested, or a Complete with results has been sent.
	asked
	// leaving: it was asked for, and the target gives it back itself.
	leaving
)

// locking counts the locks of a rank on all its windows. locks is the number of calls of Lock and LockAll that are not
// undone. wanting is the queue of the last wanted lock.
type locking struct {
	locks   atomic.Int32
	wanting atomic.Pointer[deferred]
}

type lockingKey struct{}

// want records that a lock is wanted.
func (d *deferred) want(kind LockKind) {
	d.mu.Lock()
	d.hold, d.kind = wanted, kind
	d.mu.Unlock()
	d.core.locking.wanting.Store(d)
}

// takeWanted returns when this rank holds the lock that is wanted on any of its windows.
func (c *core) takeWanted(ctx context.Context, call string) error {
	d := c.locking.wanting.Load()
	if d == nil {
		return nil
	}
	_, err := d.take(ctx)
	if err == nil {
		err = d.awaitGrant(ctx)
	}
	if err != nil && c.world.Unserved(call, d.link.Rank()) != nil {
		// Calls that need that rank return this error.
		return nil
	}
	return c.blame(call, d.link.Rank(), err)
}

// take requests the lock if it is wanted. rode reports whether the request carries all queued operations. These are
// then complete when the lock is granted.
func (d *deferred) take(ctx context.Context) (rode bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hold != wanted {
		return false, nil
	}
	err = d.ask(ctx, false)
	return err == nil && len(d.queue.Operations) == 0, err
}

// ask requests the wanted lock. If leave is set and the request carries all queued operations, the target releases the
// lock at once. The caller holds the mutex.
func (d *deferred) ask(ctx context.Context, leave bool) error {
	rides, err := d.packAll(ctx)
	if err != nil {
		return err
	}
	hold, m := asked, job.Message{Kind: messageLock, A: uint8(d.kind)}
	if rides && leave {
		m.B, hold = lockOnce, leaving
	}
	return d.ride(ctx, &m, hold, rides)
}

// complete sends the Complete of a number with all queued operations, if the post of the target has not arrived and
// they fit a message.
func (d *deferred) complete(ctx context.Context, number uint32) (rides bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.posted() {
		return false, nil
	}
	switch rank := d.link.Rank(); {
	case d.core.world.Gone(rank):
		return false, d.core.world.LeftBy("", rank)
	case d.core.parted(rank):
		return false, &job.PeerError{Rank: rank, Cause: ErrDeparted}
	}
	if rides, err = d.packAll(ctx); err != nil || !rides {
		return false, err
	}
	hold, m := settled, job.Message{Kind: messageComplete, Z: uint64(number)}
	if d.arrivals != nil {
		hold = asked
	}
	return true, d.ride(ctx, &m, hold, true)
}

// ticket returns a new ticket for a rank, which is not 0.
func (c *core) ticket(rank int) uint64 {
	for {
		if t := c.tickets[rank].Add(1); t != 0 {
			return uint64(t)
		}
	}
}

// ride sends a message with the packed operations. all is set if these are all queued ones.
func (d *deferred) ride(ctx context.Context, m *job.Message, hold hold, all bool) error {
	m.Service, m.Y = d.core.number, uint64(d.core.tallies.passed.Load())
	// The response may arrive at once, but not before riding is set.
	d.riding.Store(d.arrivals)
	if hold != settled {
		m.X = d.core.ticket(d.link.Rank())
	}
	if err := d.link.TellWithin(ctx, m, d.packet.Packet()); err != nil {
		d.riding.Store(nil)
		d.unpack()
		return err
	}
	d.arrivals, d.hold, d.loaded = nil, hold, hold != settled && d.packet.Operations() > 0
	d.unpack()
	if all {
		d.queue.Drop(len(d.queue.Operations))
		d.sentNow()
	}
	d.link.Post()
	return nil
}

// packAll packs all queued operations, if they fit a message. It sends nothing.
func (d *deferred) packAll(ctx context.Context) (fits bool, err error) {
	operations := d.queue.Operations
	if d.queue.Len()*aggregate.OffsetBytes > d.link.MaxPayload() {
		return false, nil
	}
	d.lookUp()
	d.planner.Plan(operations, scheduler.End, &d.plan)
	steps := d.plan.Steps
	d.plan.Steps = steps[:0]
	d.whole = true
	counts := d.counts.packed
	defer func() {
		if d.whole = false; !fits {
			d.counts.packed = counts
		}
	}()
	for i := range steps {
		err := errNoRoom
		if steps[i].Packed {
			err = d.pack(ctx, operations[steps[i].First:][:steps[i].Count], steps[i].Bytes)
		}
		if err != nil {
			d.unpack()
			if errors.Is(err, errNoRoom) {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}

// errNoRoom means that operations do not fit the message that is to carry them.
var errNoRoom = errors.New("no room")

// unpack forgets the packed operations.
func (d *deferred) unpack() {
	d.packet.Begin(nil, 0)
	d.packed = 0
	if d.arrivals != nil {
		d.arrivals.giveBack()
		d.arrivals = nil
	}
}

// answered reports whether the target has granted the last ticket. The caller holds the mutex.
func (d *deferred) answered() bool {
	rank := d.link.Rank()
	answered := d.hold < asked || reached(&d.core.granted[rank], d.core.tickets[rank].Load())
	if answered && d.hold == asked {
		d.hold = settled
	}
	return answered
}

const expectedSome = 1 << 32

// expect records that the target has to post number. The caller holds the latch. There are no operations of that epoch
// yet, and the previous post has arrived.
func (d *deferred) expect(number uint32) { d.expected.Store(expectedSome | uint64(number)) }

// posted reports whether the expected post has arrived.
func (d *deferred) posted() bool {
	expected := d.expected.Load()
	if expected == 0 {
		return true
	}
	if !reached(d.core.own.control.pair(d.link.Rank(), postAt), uint32(expected)) {
		return false
	}
	d.expected.CompareAndSwap(expected, 0)
	return true
}

// waits reports whether queued operations may not leave yet. The caller holds the mutex.
func (d *deferred) waits() bool { return !d.answered() || !d.posted() }

// awaitGrant returns when the target has granted the last ticket. The caller adds the name of the call to the error, as
// to that of awaitPost.
func (d *deferred) awaitGrant(ctx context.Context) error {
	d.mu.Lock()
	answered := d.answered()
	d.mu.Unlock()
	if answered {
		return nil
	}
	return d.awaitTicket(ctx, "", "waiting for an answer")
}

// awaitPost returns when the expected post has arrived.
func (d *deferred) awaitPost(ctx context.Context) error {
	expected := d.expected.Load()
	if expected == 0 || d.posted() {
		return nil
	}
	rank := d.link.Rank()
	return d.core.awaitWord(ctx, "", "waiting for the post", rank, d.core.own.control.pair(rank, postAt), uint32(expected), nil)
}

// awaitLeave returns when queued operations may leave.
func (d *deferred) awaitLeave(ctx context.Context) error {
	if err := d.awaitPost(ctx); err != nil {
		return err
	}
	if err := d.awaitGrant(ctx); err != nil {
		return err
	}
	return d.awaitGate(ctx)
}

// refusal returns the error of piggybacked operations that the target has rejected.
func (d *deferred) refusal(ctx context.Context) error {
	return d.link.Reach(ctx, job.Mark{}, d.core.number)
}

// openHeld is open that first waits until the lock and the post of the target have arrived, and sends what is queued.
func (d *deferred) openHeld(ctx context.Context) error {
	for {
		if err := d.open(); err != nil {
			return err
		}
		var err error
		if d.hold == wanted {
			err = d.ask(ctx, false)
		}
		left := d.waits()
		if err == nil && !left {
			left, err = d.proceed(ctx, scheduler.Message)
		}
		if err == nil && !left {
			return nil
		}
		d.mu.Unlock()
		if err == nil {
			err = d.awaitLeave(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// leave gives the lock of the queue's target back, and returns when the operations on it are complete. Its caller then
// sets hold to settled. If leave is interrupted, the next call continues, from what hold is:
//
//   - wanted: it asks for the lock, with the operations if they fit.
//   - asked or leaving: it waits until the lock is granted.
//   - settled: this rank has the lock. It sends what is queued, and after that one message that gives the lock back.
//   - returned: it waits until all that was sent is complete.
func (d *deferred) leave(ctx context.Context) error {
	d.mu.Lock()
	if d.hold == wanted && len(d.queue.Operations) == 0 {
		d.hold = settled
		d.mu.Unlock()
		return nil
	}
	var err error
	switch {
	case d.hold == wanted:
		// Without this message the operations would not be done.
		err = keepOpenIfUnsent(ctx, d.ask(ctx, true))
	case d.hold == asked && !d.loaded && len(d.queue.Operations) == 0:
		// To give it back is to take the wish back.
		d.hold = settled
		// Another goroutine may wait for it.
		c, rank := d.core, d.link.Rank()
		c.granted[rank].Store(c.tickets[rank].Load())
		c.world.Ring(c.rank)
	}
	d.mu.Unlock()
	if err == nil {
		err = d.awaitGrant(ctx)
	}
	if interrupted(ctx, err) {
		return err
	}
	d.mu.Lock()
	before := d.hold
	if before != returned {
		d.hold = settled
	}
	d.core.locking.wanting.CompareAndSwap(d, nil)
	if err != nil {
		// Nothing goes without the lock.
		d.drop()
	}
	d.mu.Unlock()
	d.unlocking.add(err)
	switch before {
	case leaving:
		d.learn()
		d.unlocking.add(d.refusal(ctx))
		return d.unlocking.take()
	case wanted:
		// The target has not been asked.
		return d.unlocking.take()
	case returned:
	default:
		operationErr, err := d.tellUnlock(ctx)
		d.unlocking.add(operationErr)
		if interrupted(ctx, err) {
			return err
		}
		d.unlocking.add(err)
		d.setHold(returned)
	}
	err = d.flush(ctx)
	if interrupted(ctx, err) {
		return err
	}
	d.unlocking.add(err)
	return d.unlocking.take()
}

// setHold notes how far the lock is.
func (d *deferred) setHold(hold hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold = hold
}

// granted handles the grant of a lock, with the response to the packet of its request. Progress calls it.
func (s *server) granted(from *job.Link, m *job.Message, payload []byte) error {
	c, rank := s.core, from.Rank()
	ticket := c.tickets[rank].Load()
	switch {
	case m.X>>32 != 0 || !epoch.Reached(ticket, uint32(m.X)):
		return fmt.Errorf("a lock for ticket %d, the last was %d", m.X, ticket)
	case reached(&c.granted[rank], uint32(m.X)):
		// The request was withdrawn.
		return nil
	}
	var riding *arrivals
	if p := c.peers[rank].Load(); p != nil && p.deferred != nil && uint32(m.X) == ticket {
		riding = p.deferred.riding.Swap(nil)
	}
	switch {
	case riding == nil && len(payload) > 0:
		return fmt.Errorf("an answer of %s with a lock that was asked for alone", errtext.Count(len(payload), "byte"))
	case riding != nil && !riding.Answered(payload):
		return fmt.Errorf("%w: an answer of %s with a lock", job.ErrMessage, errtext.Count(len(payload), "byte"))
	}
	from.Granted(c.number, uint32(m.X))
	c.granted[rank].Store(uint32(m.X))
	return nil
}
