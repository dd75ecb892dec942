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

// flushRemote completes the operations on ranks that are reached over links.
func (c *core) flushRemote(ctx context.Context, call string, include func(rank int) bool) error {
	err := c.eachLink(include, func(rank int, p *peer) error {
		err := p.deferred.start(ctx, scheduler.Nothing)
		p.link.Push()
		return c.blame(call, rank, err)
	})
	return errors.Join(err, c.eachLink(include, func(rank int, p *peer) error { return c.blame(call, rank, p.deferred.flush(ctx)) }))
}

// settleRemote waits until the buffers of the operations on ranks that are reached over links belong to the program
// again.
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
	var failed *job.PeerError
	// The cause of a context may be the failure of another rank, for which the program has cancelled it.
	if errors.As(err, &failed) && !ours(err, context.Canceled) && !ours(err, context.DeadlineExceeded) {
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
	d.kind = kind
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
// the call has opened nothing, so that none could continue it. It may wait for room, as long as the rank may be silent.
func (d *deferred) returnLock() {
	// An error is the failure of the rank, which other calls report.
	_ = throughShortage(func() error { return d.tellUnlock(context.Background()) })
}

// tellUnlock gives the lock of the rank back, after all that is queued. If it is interrupted, the lock is not given back,
// and the next call continues. With another error the rank is told all the same, if it lives.
func (d *deferred) tellUnlock(ctx context.Context) error {
	err := d.start(ctx, scheduler.Message)
	if interrupted(ctx, err) {
		return err
	}
	d.mu.Lock()
	kind := d.kind
	d.mu.Unlock()
	m := job.Message{Kind: messageUnlock, Service: d.core.number, A: uint8(kind), X: uint64(d.core.tickets[d.link.Rank()].Load()), AfterReads: true}
	told := d.link.TellWithin(ctx, &m, nil)
	d.link.Post()
	return errors.Join(err, told)
}
