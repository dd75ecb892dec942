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

// Operations on a rank that is reached over a link are deferred: they wait in a queue of
// the window and the rank until a call has to complete them, or enough of them wait. Then
// they are planned, and sent in the order of the plan: packed, in messages of several, or
// direct, by RDMA.
//
// Invariants:
//
//   - The mutex of a queue is held while what is queued is sent, so that what is queued
//     later is sent later. To send may be to wait for room, and to make progress meanwhile;
//     progress takes no mutex of a queue.
//   - So nobody takes it who has the latch of the window, which others of the rank spin for,
//     nor the other way round.
//   - Whatever tells the rank that operations are complete, or asks it, goes over the same
//     link behind them.

// deferred are the operations on one rank that were not sent.
type deferred struct {
	core *core
	link *job.Link
	// region is the rank's part of the window, for direct operations.
	region verbs.RemoteRegion

	// most is how many bytes of the window one packed operation can touch.
	most int

	// mu is held for short to queue an operation, and else for long.
	mu      latch.Lock
	queue   scheduler.Queue
	planner scheduler.Planner
	// learner chooses the planner's scheme, nil if that stays; scheme is what it has chosen.
	learner *scheduler.Learner
	scheme  scheduler.Scheme
	// operands are copies of those that are too long for the records of the queue.
	operands []byte
	plan     scheduler.Plan
	// The first planned operations are those of plan, of which the steps before step are
	// done. At the end of an epoch final is the last that is direct; else it is -1.
	step, planned, final int
	// packed is how many bytes of the operation at hand are packed, if it is longer than a packet: of a
	// run, how many bytes of its words.
	packed int
	// packet is the one that is being packed, in memory; arrivals is where its answer goes.
	// whole tells that nothing is packed behind it.
	packet   aggregate.Writer
	memory   []byte
	arrivals *arrivals
	whole    bool
	// expected is the post that the rank has to make and is not known to have: its number
	// and expectedSome. It is 0 if there is none.
	expected atomic.Uint64
	// hold is how far the lock of the rank is, and kind of which kind; loaded tells that the
	// operations sent last ride with it, and are complete when it is granted, riding where their answer goes.
	hold   hold
	kind   LockKind
	loaded bool
	riding atomic.Pointer[arrivals]
	// flying tells that there were direct operations that nobody has waited for: their
	// buffers are in use, while what is packed is copied. directs counts them, and lastDirect
	// is the point behind the last.
	flying     bool
	directs    uint64
	lastDirect job.Mark
	// shares are those of the puts that were packed with their notifications since the buffers were waited for last.
	shares float64
	// used and flown tell that there were operations since the last Fence, and direct
	// ones; gate holds direct ones up that come early.
	used, flown bool
	gate        gate
	// marked tells that the rank was sent a mark for the Fence in progress.
	marked atomic.Bool
	// starts counts how often operations were sent, last is the point after that.
	starts uint64
	last   job.Mark

	counts deferredCounts

	// spare are arrivals that are not in use; spareMu is taken by progress too.
	spareMu sync.Mutex
	spare   *arrivals
}

// newDeferred is the queue for the rank of a link, whose region is for direct operations if
// direct is set.
func newDeferred(c *core, link *job.Link, region verbs.RemoteRegion, direct bool) *deferred {
	d := &deferred{
		core: c, link: link, region: region, most: aggregate.Most(link.MaxPayload()),
		planner: *scheduler.NewPlanner(scheduler.Conditions{
			Costs: link.Costs(), Scheme: c.hints.Scheme, Direct: direct, Atomics: direct && c.cards != cardsUnused, Packet: link.MaxPayload(), Unknown: unknown(link),
		}),
		scheme: c.hints.Scheme,
	}
	if d.scheme&scheduler.Adapt != 0 {
		d.learner = scheduler.NewLearner(d.scheme)
	}
	return d
}

// unknown is how much longer what the card of a link does not know takes, nil if it knows all.
func unknown(link *job.Link) func(bytes int) float64 {
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
	if s := d.learner.Scheme(); s != d.scheme {
		d.scheme, d.planner = s, d.planner.With(s)
	}
}

// open takes the mutex for an operation, unless its epoch has been closed. A call that closes
// an epoch takes the mutex after it has: it finds what was queued before, and who comes
// later finds the epoch closed.
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

// join begins to queue an operation: it takes the mutex for short and gives the operation's
// record, which is all zero but for what is given here. queued is the end.
func (d *deferred) join(kind aggregate.Kind, bytes int) (*scheduler.Operation, error) {
	if err := d.openShort(); err != nil {
		return nil, err
	}
	return d.queue.Add(kind, bytes), nil
}

// queued ends what join has begun: it sends the queue if it is due, and gives the mutex back.
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

// sendDue sends what is due.
func (d *deferred) sendDue() error {
	d.mu.Extend()
	left, err := d.proceed(context.Background(), scheduler.Nothing)
	left = left && d.queue.Full()
	d.mu.Unlock()
	if left {
		err = d.start(context.Background(), scheduler.Nothing)
	}
	if err != nil && ours(err, verbs.ErrShortage) {
		// It is queued, and the next call sends it.
		return nil
	}
	return err
}

const (
	// longOperand is up to how many bytes an operand is copied, roomForOperands how many of
	// them wait together at most.
	longOperand     = 1 << 10
	roomForOperands = 16 << 10
)

// addCopied queues an operation with an operand that is copied. When there is no room for
// it what is queued is sent first.
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

// begin has what is queued on its way, and tells whether something is left because it has to
// wait for a lock, a post or a Fence. behind is what comes behind it.
func (d *deferred) begin(ctx context.Context, behind scheduler.Behind) (left bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.proceed(ctx, behind)
}

// proceed is begin with the mutex.
func (d *deferred) proceed(ctx context.Context, behind scheduler.Behind) (left bool, err error) {
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
	return d.send(ctx, behind)
}

// start has what is queued on its way. behind is what comes behind it.
func (d *deferred) start(ctx context.Context, behind scheduler.Behind) error {
	for {
		left, err := d.begin(ctx, behind)
		if err != nil || !left {
			return err
		}
		if err := d.awaitLeave(ctx); err != nil {
			return err
		}
	}
}

// flush returns when all operations so far are complete at the rank, and its lock is held if
// it is wanted.
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

// A lateFlush is one that could not begin at once. It belongs to the mutex of the queue.
type lateFlush struct {
	begun bool
	mark  job.Mark
	// ticket is that of the grant that it is complete with, 0 if with none.
	ticket uint32
}

// beginFlush has on its way what joined the queue until it had been sent so often, and a question for the end of
// that, once: late keeps it, with the point at which all is complete.
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

// askFlush waits for room to ask for the end of a flush, which all is on its way for.
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

// send sends what is queued, and tells whether something is left because it has to wait for a
// Fence. If its context ends it, what is left is sent by the next; if the rank has failed it is
// lost. It is called with the mutex.
func (d *deferred) send(ctx context.Context, behind scheduler.Behind) (left bool, err error) {
	err = d.carryOut(ctx, behind)
	if errors.Is(err, errBehindGate) {
		return true, nil
	}
	return false, d.ended(ctx, err)
}

// ended notes how sending has ended: only what a context has cut short goes on.
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

// sentNow notes that something has been sent.
func (d *deferred) sentNow() {
	d.starts++
	d.last = d.link.Questions()
	if d.flying {
		d.last = d.last.And(d.lastDirect)
	}
}

// expectDirect has the completion heard of direct operations that were sent before the plan
// that a message follows. It is called with the mutex, before that.
func (d *deferred) expectDirect() {
	if d.flying {
		d.link.Expect(d.lastDirect)
	}
}

// settle returns when the buffers of all operations so far are the program's again, and
// their results are valid.
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

// joined is what a Request keeps of the operation that was queued last.
func (d *deferred) joined() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue.Operations) == 0 {
		return d.starts - 1
	}
	return d.starts
}

// A departure is how far an operation is.
type departure uint8

const (
	// departed: a mark tells when it is complete.
	departed departure = iota
	// staying: it waits for a lock, a post or a Fence.
	staying
	// riding: it is complete when what it rides with has been granted.
	riding
	// unasked: there was no room to send it, or to ask for the end of a flush.
	unasked
)

// sent has an operation on its way that joined the queue when that had been sent so often,
// and gives a point behind it.
func (d *deferred) sent(ctx context.Context, before uint64) (last job.Mark, how departure, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	how, err = d.depart(ctx, before)
	return d.last, how, err
}

// depart is sent with the mutex, without the point.
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

// noticed is what comes behind a put with a notification. Some call will wait for the buffers of such puts. It need not if
// all of them are packed, which is worth it while their shares are less than 1 together. A long put goes direct, and its
// completion is heard of by itself, so that who waits for it need not ask. It is called with the mutex.
func (d *deferred) noticed(bytes int) scheduler.Behind {
	share := d.planner.Share(bytes)
	switch {
	case share >= 1:
		// It may have left already.
		d.expectDirect()
	case d.flying || d.shares+share >= 1:
		return scheduler.Message
	default:
		d.shares += share
	}
	return scheduler.End
}

// notify queues a notification behind the put of so many bytes that it is of, and sends both.
func (d *deferred) notify(slot, bytes int) error {
	if err := d.open(); err != nil {
		return err
	}
	d.queue.Add(aggregate.Notify, 0).Offset = uint64(slot)
	behind := d.noticed(bytes)
	left, err := d.proceed(context.Background(), behind)
	d.mu.Unlock()
	if left && err == nil {
		err = d.start(context.Background(), behind)
	}
	d.link.Post()
	if ours(err, verbs.ErrShortage) {
		return nil
	}
	return err
}
