package window

import (
	"context"
	"errors"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
)

// behind returns the i-th rank after this one, where rank 0 follows the last rank. A rank that sends to many uses this
// order, so that not all ranks send to the same one first.
func (c *core) behind(i int) int { return (c.rank + 1 + i) % c.size }

// eachLink calls do for each rank for which include holds and that this rank has reached over a link. It joins the
// errors.
func (c *core) eachLink(include func(rank int) bool, do func(rank int, p *peer) error) error {
	var errs []error
	for i := range c.peers {
		rank := c.behind(i)
		if p := c.peers[rank].Load(); p != nil && p.link != nil && include(rank) {
			if err := do(rank, p); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

func everyone(int) bool { return true }

// flushRemote completes the operations on ranks that are reached over links. It joins the errors.
func (c *core) flushRemote(ctx context.Context, call string, include func(rank int) bool) error {
	var errs []error
	c.flushEach(ctx, call, include, func(err error) { errs = append(errs, err) })
	return errors.Join(errs...)
}

// flushEach is flushRemote that passes each error, of one rank, to failed.
func (c *core) flushEach(ctx context.Context, call string, include func(rank int) bool, failed func(err error)) {
	blame := func(rank int, err error) {
		if err != nil {
			failed(c.blame(call, rank, err))
		}
	}
	_ = c.eachLink(include, func(rank int, p *peer) error {
		err := p.deferred.start(ctx, scheduler.Nothing)
		p.link.Push()
		blame(rank, err)
		return nil
	})
	_ = c.eachLink(include, func(rank int, p *peer) error {
		blame(rank, p.deferred.flush(ctx))
		return nil
	})
}

// settleRemote waits until the buffers of the operations on ranks that are reached over links belong to the program
// again. It joins the errors.
func (c *core) settleRemote(ctx context.Context, call string, include func(rank int) bool) error {
	return c.eachLink(include, func(rank int, p *peer) error {
		return c.blame(call, rank, p.deferred.settle(ctx))
	})
}

// blame returns the error of a link with the call that it belongs to.
func (c *core) blame(call string, rank int, err error) error {
	if err == nil {
		return nil
	}
	if failed := job.Failed(err); failed != nil {
		return &job.PeerError{Rank: rank, Op: call, Cause: failed.Cause}
	}
	return errtext.Errorf("%s: %w", errtext.Call("window", call), closedMeanwhile(err))
}

// awaitTicket waits until the last request, for a lock or for the end of an epoch, has been granted: see awaitWord.
func (d *deferred) awaitTicket(ctx context.Context, call, doing string) error {
	c, rank := d.core, d.link.Rank()
	return c.awaitWord(ctx, call, doing, rank, &c.granted[rank], c.tickets[rank].Load(), d)
}

// askLock requests the lock of the rank in a message without operations.
func (d *deferred) askLock(ctx context.Context, kind LockKind) error {
	d.mu.Lock()
	d.kind, d.hold = kind, settled
	d.mu.Unlock()
	m := job.Message{Kind: messageLock, Service: d.core.number, A: uint8(kind), X: d.core.ticket(d.link.Rank()), Y: uint64(d.core.tallies.passed.Load())}
	err := d.link.TellWithin(ctx, &m, nil)
	d.link.Post()
	return err
}

// awaitLock waits until the requested lock has been granted. If that fails, it withdraws the request.
func (d *deferred) awaitLock(ctx context.Context, call string) error {
	err := d.awaitTicket(ctx, call, "")
	if err != nil {
		d.returnLock()
	}
	return err
}

// returnLock gives the lock of the rank back, or withdraws the request for it, when nothing is queued. It has no context:
// the call has opened no epoch, so no later call would continue it. It may wait for room, as long as the rank may be silent.
func (d *deferred) returnLock() {
	// An error is the failure of the rank, which other calls report. If a message cannot be sent for want of memory, the
	// lock stays with this rank until this rank ends.
	_ = throughShortage(func() error { _, err := d.tellUnlock(context.Background()); return err })
}

// tellUnlock gives the lock of the rank back, after all that is queued. If err says that it is interrupted, the lock is
// not given back, and the next call continues. Operations that could not be sent are no reason to keep the lock:
// operationErr is their error, which no later call returns.
func (d *deferred) tellUnlock(ctx context.Context) (operationErr, err error) {
	operationErr = d.start(ctx, scheduler.Message)
	if interrupted(ctx, operationErr) {
		return nil, operationErr
	}
	d.mu.Lock()
	kind := d.kind
	d.mu.Unlock()
	m := job.Message{Kind: messageUnlock, Service: d.core.number, A: uint8(kind), X: uint64(d.core.tickets[d.link.Rank()].Load()), AfterReads: true}
	err = d.link.TellWithin(ctx, &m, nil)
	d.link.Post()
	return operationErr, keepOpenIfUnsent(ctx, err)
}
