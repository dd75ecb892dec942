package window

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/latch"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// Operations on a rank that is reached over a link are deferred. They wait in a queue of the window and the rank until
// a call has to complete them, or enough of them wait. Then they are planned, and sent in the order of the plan:
// packed, several in a message, or direct, by RDMA.
//
// Invariants:
//
//   - The mutex of a queue is held while queued operations are sent. So operations that are queued later are sent
//     later. Sending may wait for room and make progress meanwhile. Progress takes no mutex of a queue.
//   - So no goroutine takes the mutex while it holds the latch of the window, for which other goroutines of the rank
//     spin. Nor does one take the latch while it holds the mutex.
//   - A message that tells the rank that operations are complete, or asks it, goes over the same link after the
//     operations.

// deferred has the operations on one rank that have not been sent.
type deferred struct {
	core *core
	link *job.Link
	// region is the rank's part of the window, for direct operations.
	region verbs.RemoteRegion

	// most is the number of bytes of the window that one packed operation can touch.
	most int

	// mu is held for a short time to queue an operation, and otherwise for long.
	mu      latch.Lock
	queue   scheduler.Queue
	planner scheduler.Planner
	// learner chooses the planner's scheme. It is nil if the scheme is fixed. scheme and pattern are the current choice.
	learner *scheduler.Learner
	scheme  scheduler.Scheme
	pattern scheduler.Pattern
	// operands has copies of the operands that are too long for the records of the queue.
	operands []byte
	plan     scheduler.Plan
	// The first planned operations are those of plan, whose steps before step are done. At the end of an epoch final is
	// the last direct operation; otherwise it is -1.
	step, planned, final int
	// packed is the number of packed bytes of the current operation, if it is longer than a packet. Of a run it counts
	// bytes of words.
	packed int
	// packet is being packed in memory. Its response goes to arrivals. whole is set if nothing may be packed after it.
	packet   aggregate.Writer
	memory   []byte
	arrivals *arrivals
	whole    bool
	// expected is the number of a post that has not arrived, with expectedSome. It is 0 if there is none.
	expected atomic.Uint64
	// hold is the state of the lock of the rank, and kind its kind. loaded is set if the operations that were sent last
	// are in the message of the lock request. They are complete when the lock is granted, and their response goes to
	// riding.
	hold   hold
	kind   LockKind
	loaded bool
	riding atomic.Pointer[arrivals]
	// unlocking has what an interrupted Unlock of the rank has still to return.
	unlocking keptErrors
	// flying is set if no call has waited for direct operations. Their buffers are in use, whereas packed operands are
	// copies. directs counts direct operations, and lastDirect is the point after the last.
	flying     bool
	directs    uint64
	lastDirect job.Mark
	// shares is the sum of the shares of puts that were packed with their notifications since the last wait for
	// buffers.
	shares float64
	// used is set if there were operations since the last Fence, flown if there were direct ones. gate delays direct
	// operations that come too early.
	used, flown bool
	gate        gate
	// marked is set if the rank was sent a marker for the Fence in progress.
	marked atomic.Bool
	// starts counts the times that operations were sent. last is the point after the last time.
	starts uint64
	last   job.Mark

	counts deferredCounts

	// spare has arrivals that are not in use. Progress takes spareMu, too.
	spareMu sync.Mutex
	spare   *arrivals
}

// newDeferred returns the queue for the rank of a link. Direct operations use region, if direct is set.
func newDeferred(c *core, link *job.Link, region verbs.RemoteRegion, direct bool) *deferred {
	d := &deferred{
		core: c, link: link, region: region, most: aggregate.Most(link.MaxPayload()),
		planner: *scheduler.NewPlanner(scheduler.Conditions{
			Costs: link.Costs(), Scheme: c.hints.Scheme, Direct: direct, Atomics: direct && c.cards != cardsUnused, Packet: link.MaxPayload(), Unregistered: unregistered(link),
		}),
		scheme: c.hints.Scheme,
	}
	if d.scheme&scheduler.Adapt != 0 {
		d.learner = scheduler.NewLearner(d.scheme)
	}
	return d
}

// unregistered returns the additional time of transfers from memory that is not registered with the card of a link, or
// nil if that needs no registration.
func unregistered(link *job.Link) func(bytes int) float64 {
	if !link.Registers() {
		return nil
	}
	return link.Unknown
}

// learn ends an epoch: all operations so far are complete.
func (d *deferred) learn() {
	if d.learner == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.learner.End(d.planner.Ended(&d.queue), d.core.now)
	if s, p := d.learner.Scheme(), d.learner.Pattern(); s != d.scheme || p != d.pattern {
		d.scheme, d.pattern, d.planner = s, p, d.planner.With(s, p)
	}
}

// open takes the mutex for an operation, unless its epoch is closed. A call that closes an epoch takes the mutex
// afterwards. It finds the operations that were queued before, and a later open finds the epoch closed.
func (d *deferred) open() error {
	d.mu.Lock()
	if rank := d.link.Rank(); !d.core.epochs.Open(rank) {
		d.mu.Unlock()
		return d.core.whyClosed("operation", rank)
	}
	d.used = true
	return nil
}

// openShort is open for a few instructions.
func (d *deferred) openShort() error {
	d.mu.LockShort()
	if rank := d.link.Rank(); !d.core.epochs.Open(rank) {
		d.mu.UnlockShort()
		return d.core.whyClosed("operation", rank)
	}
	d.used = true
	return nil
}

// join begins to queue an operation. It takes the mutex for a short time and returns the operation's record. Only kind
// and bytes are set; the rest is zero. queued ends it.
func (d *deferred) join(kind aggregate.Kind, bytes int) (*scheduler.Operation, error) {
	if err := d.openShort(); err != nil {
		return nil, err
	}
	return d.queue.Add(kind, bytes), nil
}

// queued ends what join has begun. It sends the queue if that is due, and releases the mutex.
func (d *deferred) queued() error {
	if !d.planner.Due(&d.queue) {
		d.mu.UnlockShort()
		return nil
	}
	return d.sendDue()
}

// accumulate queues an accumulate of one element of at most a word; see scheduler.Queue.Accumulate.
func (d *deferred) accumulate(op Op, element reduce.Kind, bytes int, offset, operand uint64) error {
	if err := d.openShort(); err != nil {
		return err
	}
	if d.planner.Runs() {
		d.queue.Accumulate(op, element, bytes, offset, operand)
	} else {
		o := d.queue.Add(aggregate.Accumulate, bytes)
		o.Op, o.Element, o.Offset, o.Value[0] = op, element, offset, operand
	}
	return d.queued()
}

// sendDue sends the queue, which is due.
func (d *deferred) sendDue() error {
	d.mu.Extend()
	if base, outgrown := d.planner.Outgrown(&d.queue); outgrown {
		// The end of the epoch chooses again.
		d.scheme, d.pattern, d.planner = d.core.hints.Scheme, scheduler.Pattern{}, base
		if !base.Due(&d.queue) {
			d.mu.Unlock()
			return nil
		}
	}
	left, err := d.proceed(context.Background(), scheduler.Nothing)
	left = left && d.queue.Full()
	d.mu.Unlock()
	if left {
		err = d.start(context.Background(), scheduler.Nothing)
	}
	if err != nil && job.Is(err, verbs.ErrShortage) {
		// The operation is queued, and the next call sends it.
		return nil
	}
	return err
}

const (
	// longOperand is the maximum number of bytes of an operand that is copied. roomForOperands is the maximum number of
	// copied bytes that wait together.
	longOperand     = 1 << 10
	roomForOperands = 16 << 10
)

// addCopied queues an operation with an operand that is copied. If there is no room for the copy, the queue is sent
// first.
func (d *deferred) addCopied(o *scheduler.Operation, operand []byte) error {
	if err := d.openShort(); err != nil {
		return err
	}
	if len(d.queue.Operations) == 0 {
		d.operands = d.operands[:0]
	}
	if d.operands == nil {
		d.operands = make([]byte, 0, roomForOperands)
	}
	if len(d.operands)+len(operand) > cap(d.operands) {
		d.mu.UnlockShort()
		if err := d.start(context.Background(), scheduler.Nothing); err != nil {
			return err
		}
		return d.addCopied(o, operand)
	}
	at := len(d.operands)
	d.operands = append(d.operands, operand...)
	d.core.world.Copied(len(operand))
	o.Origin = &d.operands[at]
	*d.queue.Add(o.Kind, o.Bytes) = *o
	return d.queued()
}

// begin sends what is queued. left reports whether operations remain that have to wait for a lock, a post or a Fence.
// following is what follows the operations.
func (d *deferred) begin(ctx context.Context, following scheduler.Following) (left bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proceed(ctx, following)
}

// proceed is begin for a caller that holds the mutex.
func (d *deferred) proceed(ctx context.Context, following scheduler.Following) (left bool, err error) {
	if len(d.queue.Operations) == 0 {
		return false, nil
	}
	if d.hold == wanted {
		err := d.ask(ctx, false)
		return len(d.queue.Operations) > 0, err
	}
	if d.waits() {
		return true, nil
	}
	return d.send(ctx, following)
}

// start sends all that is queued. following is what follows the operations.
func (d *deferred) start(ctx context.Context, following scheduler.Following) error {
	for {
		left, err := d.begin(ctx, following)
		if err != nil || !left {
			return err
		}
		if err := d.awaitLeave(ctx); err != nil {
			return err
		}
	}
}

// flush returns when all operations so far are complete at the rank. If its lock is wanted, this rank then holds it.
func (d *deferred) flush(ctx context.Context) error {
	rode, err := d.take(ctx)
	if err == nil {
		err = d.awaitGrant(ctx)
	}
	switch {
	case err != nil:
		return err
	case rode:
		d.learn()
		return d.refusal(ctx)
	}
	if err := d.start(ctx, scheduler.Nothing); err != nil {
		return err
	}
	err = d.link.Flush(ctx, d.core.number)
	d.learn()
	return err
}

// A lateFlush is a flush that could not begin at once. The mutex of the queue guards it.
type lateFlush struct {
	begun bool
	mark  job.Mark
	// ticket is that of the grant by which the flush is complete, or 0 if there is none.
	ticket uint32
}

// beginFlush sends the operations that joined the queue when starts was before, and requests once that the rank confirm
// them. late keeps the point at which all of them are complete.
func (d *deferred) beginFlush(ctx context.Context, before uint64, late *lateFlush) (m job.Mark, how departure, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rank := d.link.Rank()
	switch {
	case late.begun:
		return late.mark, departed, nil
	case late.ticket != 0:
		if !reached(&d.core.granted[rank], late.ticket) {
			return job.Mark{}, riding, nil
		}
		m = job.GrantMark(late.ticket)
	default:
		if how, err = d.depart(ctx, before); how == staying || err != nil {
			return job.Mark{}, how, err
		}
		if d.starts == before+1 && d.loaded {
			late.ticket = d.core.tickets[rank].Load()
		}
		if how == riding {
			return job.Mark{}, how, nil
		}
		if m = job.GrantMark(late.ticket); late.ticket == 0 {
			var ok bool
			if m, ok = d.link.Push(); !ok {
				return job.Mark{}, unasked, nil
			}
		}
	}
	late.begun, late.mark = true, m
	return m, departed, nil
}

// askFlush waits for room for the request of a flush whose operations have all been sent.
func (d *deferred) askFlush(ctx context.Context, late *lateFlush) error {
	m, err := d.link.PushWithin(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	late.begun, late.mark = true, m
	return nil
}

// send sends what is queued. left reports whether operations remain that have to wait for a Fence. If its context ends,
// the next send continues. If the rank has failed, the operations are dropped. The caller holds the mutex.
func (d *deferred) send(ctx context.Context, following scheduler.Following) (left bool, err error) {
	err = d.carryOut(ctx, following)
	if errors.Is(err, errBehindGate) {
		return true, nil
	}
	return false, d.ended(ctx, err)
}

// ended records how sending has ended. Only if a context has ended it, the next send continues.
func (d *deferred) ended(ctx context.Context, err error) error {
	if interrupted(ctx, err) {
		return err
	}
	if err != nil {
		d.drop()
	}
	d.loaded = false
	d.sentNow()
	return err
}

// sentNow records that operations have been sent.
func (d *deferred) sentNow() {
	d.starts++
	d.last = d.link.Questions()
	if d.flying {
		d.last = d.last.And(d.lastDirect)
	}
}

// expectDirect requests signaled completions of the direct operations that were sent before the plan which a message
// follows. The caller holds the mutex, and sends the message afterwards.
func (d *deferred) expectDirect() {
	if d.flying {
		d.link.Expect(d.lastDirect)
	}
}

// settle returns when the buffers of all operations so far belong to the program again, and their results are valid.
func (d *deferred) settle(ctx context.Context) error {
	if err := d.start(ctx, scheduler.Local); err != nil {
		return err
	}
	if err := d.awaitGrant(ctx); err != nil {
		return err
	}
	d.mu.Lock()
	last, directs := d.last, d.directs
	d.mu.Unlock()
	if err := d.link.Reach(ctx, last, d.core.number); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.directs == directs {
		d.flying, d.shares = false, 0
	}
	return nil
}

// joined returns what a Request keeps of the operation that was queued last.
func (d *deferred) joined() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue.Operations) == 0 {
		return d.starts - 1
	}
	return d.starts
}

// A departure is the state of an operation on its way to the target.
type departure uint8

const (
	// departed: it is complete at a mark.
	departed departure = iota
	// staying: it waits for a lock, a post or a Fence.
	staying
	// riding: it is complete when the request that carries it has been granted.
	riding
	// unasked: there was no room to send it, or the request of a flush.
	unasked
)

// sent sends an operation that joined the queue when starts was before, and returns a point after it.
func (d *deferred) sent(ctx context.Context, before uint64) (last job.Mark, how departure, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how, err = d.depart(ctx, before)
	return d.last, how, err
}

// depart is sent, without the point, for a caller that holds the mutex.
func (d *deferred) depart(ctx context.Context, before uint64) (how departure, err error) {
	if d.starts == before {
		left, err := d.proceed(ctx, scheduler.Nothing)
		if left || err != nil {
			return staying, err
		}
	}
	if d.starts == before+1 && d.loaded && !d.answered() {
		return riding, nil
	}
	return departed, nil
}

// noticed returns what follows a put with a notification. Some call will wait for the buffers of such puts. It need not
// wait if all of them are packed, which pays while the sum of their shares is less than 1. A long put goes direct, and
// its completion is visible by itself, so that a later wait needs no request. The caller holds the mutex.
func (d *deferred) noticed(bytes int) scheduler.Following {
	share := d.planner.Share(bytes)
	switch {
	case share >= 1:
		// The put may have left already.
		d.expectDirect()
	case d.flying || d.shares+share >= 1:
		return scheduler.Message
	default:
		d.shares += share
	}
	return scheduler.End
}

// notify queues the notification of the last put, which has bytes bytes, and sends both.
func (d *deferred) notify(slot, bytes int) error {
	if err := d.open(); err != nil {
		return err
	}
	d.queue.Add(aggregate.Notify, 0).Offset = uint64(slot)
	following := d.noticed(bytes)
	left, err := d.proceed(context.Background(), following)
	d.mu.Unlock()
	if left && err == nil {
		err = d.start(context.Background(), following)
	}
	d.link.Post()
	if job.Is(err, verbs.ErrShortage) {
		return nil
	}
	return err
}
